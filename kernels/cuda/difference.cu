// out[i] = in[i] - in[i-1], at the speed of a copy: each element is read once from memory. A thread finds neighbours in
// its own vector and in the lane beside it; at the edge of a warp it reads the neighbour from the cache.
#include "kernels/cuda/difference.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/stage_words.cuh"

namespace prefixd::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarpLanes = 32;
// A thread has one vector. On an H200, 2^28 f32, one vector gives 1.006 of the device copy; two give 0.967, four 0.951,
// eight 0.94. Streaming loads and stores cost another 0.03 to 0.07.
constexpr int kVectorBytes = 16;

template <class T>
struct DifferenceParams {
  const T* in;
  T* out;
  uint64_t num_items;
  T init;
  const T* carry_in;
  T* carry_out;
};

template <class T>
struct alignas(kVectorBytes) Vector {
  static constexpr int kItems = kVectorBytes / sizeof(T);
  T items[kItems];
};

// Signed and unsigned integers subtract alike, so every integer T here is unsigned.
template <class T>
__device__ T Subtract(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return Canonical(static_cast<T>(Accumulator<T>{a} - Accumulator<T>{b}));
  } else {
    return static_cast<T>(a - b);
  }
}

// The element before the array, or behind a reversed one.
template <class T>
__device__ T Edge(const DifferenceParams<T>& params) {
  return params.carry_in != nullptr ? *params.carry_in : params.init;
}

// An item of the array, or at its end.
template <class T, bool kReverse>
__device__ void DifferenceItem(const DifferenceParams<T>& params, uint64_t i, T edge) {
  const bool at_edge = i == (kReverse ? params.num_items - 1 : 0);
  const T beside = at_edge ? edge : params.in[kReverse ? i + 1 : i - 1];
  params.out[i] = Subtract(params.in[i], beside);
}

// carry_out may be carry_in: so the block at the edge writes it, after all its threads have read that.
template <class T, bool kReverse>
__device__ void KeepCarry(const DifferenceParams<T>& params, T edge) {
  if (params.carry_out == nullptr) return;
  __syncthreads();
  const uint64_t n = params.num_items;
  if (threadIdx.x == 0) *params.carry_out = n > 0 ? params.in[kReverse ? 0 : n - 1] : edge;
}

// Arrays that are aligned to vectors.
template <class T, bool kReverse>
__global__ void __launch_bounds__(kThreads) DifferenceKernel(const DifferenceParams<T> params) {
  using V = Vector<T>;
  constexpr uint64_t kTileItems = uint64_t{kThreads} * V::kItems;
  const uint64_t tile = blockIdx.x * kTileItems;
  const uint64_t n = params.num_items;
  const bool has_edge = kReverse ? tile + kTileItems >= n : tile == 0;
  const T edge = has_edge ? Edge(params) : T{};
  if (tile + kTileItems <= n) {
    const int lane = threadIdx.x % kWarpLanes;
    const uint64_t i = tile + uint64_t{threadIdx.x} * V::kItems;
    const V in = *reinterpret_cast<const V*>(params.in + i);
    T beside_warp = edge;
    if (!kReverse && lane == 0 && i > 0) beside_warp = params.in[i - 1];
    if (kReverse && lane == kWarpLanes - 1 && i + V::kItems < n) beside_warp = params.in[i + V::kItems];
    // Narrow types travel between lanes as words.
    using Word = std::conditional_t<kIsFloating<T>, Accumulator<T>, std::conditional_t<sizeof(T) == 8, T, uint32_t>>;
    const auto mine = static_cast<Word>(in.items[kReverse ? 0 : V::kItems - 1]);
    T beside = static_cast<T>(kReverse ? __shfl_down_sync(~0u, mine, 1) : __shfl_up_sync(~0u, mine, 1));
    if (lane == (kReverse ? kWarpLanes - 1 : 0)) beside = beside_warp;
    V out;
#pragma unroll
    for (int j = 0; j < V::kItems; ++j) {
      const int other = kReverse ? j + 1 : j - 1;
      out.items[j] = Subtract(in.items[j], other >= 0 && other < V::kItems ? in.items[other] : beside);
    }
    *reinterpret_cast<V*>(params.out + i) = out;
  } else {
    for (uint64_t i = tile + threadIdx.x; i < n; i += kThreads) DifferenceItem<T, kReverse>(params, i, edge);
  }
  if (has_edge) KeepCarry<T, kReverse>(params, edge);
}

// The vectors of `out` that are aligned, and what stands before and behind them.
struct Middle {
  uint64_t first;  // In items. The array's edge is not in the middle.
  uint64_t num_vectors;
};

template <class T>
struct AnywhereParams {
  DifferenceParams<T> array;
  Middle middle;
};

template <class T, bool kReverse>
Middle MiddleOf(const DifferenceArgs& args) {
  constexpr uint64_t kItems = Vector<T>::kItems;
  const uint64_t into_vector = reinterpret_cast<uintptr_t>(args.out) % kVectorBytes / sizeof(T);
  const uint64_t first = std::min(into_vector == 0 && kReverse ? 0 : kItems - into_vector, args.num_items);
  const uint64_t rest = args.num_items - first;
  return {first, kReverse && rest > 0 ? (rest - 1) / kItems : rest / kItems};
}

// Arrays that begin anywhere: a thread has a vector of results, and reads the two words of 16 bytes that its items,
// with the one beside them, stand in. Each word is read twice, from the cache the second time.
template <class T, bool kReverse>
__global__ void __launch_bounds__(kThreads) DifferenceAnywhereKernel(const AnywhereParams<T> p) {
  using V = Vector<T>;
  const DifferenceParams<T>& params = p.array;
  const Middle& middle = p.middle;
  const uint64_t vector = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (vector < middle.num_vectors) {
    const uint64_t i = middle.first + vector * V::kItems;
    const auto address = reinterpret_cast<uintptr_t>(params.in + (kReverse ? i : i - 1));
    const auto into_word = static_cast<uint32_t>(address % kVectorBytes);
    const auto* const read = reinterpret_cast<const uint4*>(address - into_word);
    const uint4 low = read[0], high = read[1];
    constexpr int kWindowWords = sizeof(T) == 8 ? 6 : 5;  // Those of a vector, and of the item beside it.
    const uint32_t words[1][kWindowWords + 4] = {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    uint32_t window[1][kWindowWords];
    SkipBytes<sizeof(T), 1, kWindowWords>(words, into_word, window);
    T items[sizeof(window) / sizeof(T)];
    memcpy(items, window, sizeof(window));
    V out;
#pragma unroll
    for (int j = 0; j < V::kItems; ++j) {
      out.items[j] = kReverse ? Subtract(items[j], items[j + 1]) : Subtract(items[j + 1], items[j]);
    }
    *reinterpret_cast<V*>(params.out + i) = out;
  }
  if (blockIdx.x != 0) return;
  const T edge = Edge(params);
  const uint64_t in_middle = middle.num_vectors * V::kItems;
  for (uint64_t k = threadIdx.x; k < params.num_items - in_middle; k += kThreads) {
    DifferenceItem<T, kReverse>(params, k < middle.first ? k : k + in_middle, edge);
  }
  KeepCarry<T, kReverse>(params, edge);
}

bool IsAligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kVectorBytes == 0; }

// A batch as a matrix: its arrays are the rows, or the columns.
template <class T>
struct BatchParams {
  const T* in;
  T* out;
  uint64_t num_items;  // In the matrix.
  uint64_t row_items;
  bool by_rows;
  T init;
};

// A thread has kItems: a vector's where the matrix, and rows that are subtracted, are aligned to vectors; or one.
template <class T, bool kReverse, int kItems>
__global__ void __launch_bounds__(kThreads) DifferenceBatchKernel(const BatchParams<T> p) {
  struct alignas(sizeof(T) * kItems) Items {
    T items[kItems];
  };
  const uint64_t i = (uint64_t{blockIdx.x} * kThreads + threadIdx.x) * kItems;
  if (i >= p.num_items) return;
  const Items in = *reinterpret_cast<const Items*>(p.in + i);
  Items out;
  if (p.by_rows) {
    // Where in its row; short numbers divide faster.
    uint64_t place =
        p.num_items >> 32 == 0 ? static_cast<uint32_t>(i) % static_cast<uint32_t>(p.row_items) : i % p.row_items;
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      T beside = p.init;
      if (place != (kReverse ? p.row_items - 1 : 0)) {
        const int other = kReverse ? j + 1 : j - 1;
        beside = other < 0 ? p.in[i - 1] : other == kItems ? p.in[i + kItems] : in.items[other];
      }
      out.items[j] = Subtract(in.items[j], beside);
      if (++place == p.row_items) place = 0;
    }
  } else {
    const bool at_edge = kReverse ? i >= p.num_items - p.row_items : i < p.row_items;
    Items beside;
    if (!at_edge) beside = *reinterpret_cast<const Items*>(kReverse ? p.in + i + p.row_items : p.in + i - p.row_items);
#pragma unroll
    for (int j = 0; j < kItems; ++j) out.items[j] = Subtract(in.items[j], at_edge ? p.init : beside.items[j]);
  }
  *reinterpret_cast<Items*>(p.out + i) = out;
}

template <class T, bool kReverse>
cudaError_t LaunchBatch(const DifferenceArgs& args, LaunchContext* context) {
  const bool by_rows = args.order == BatchOrder::kOneByOne;
  const BatchParams<T> params = {.in = static_cast<const T*>(args.in),
                                 .out = static_cast<T*>(args.out),
                                 .num_items = args.num_items * args.num_arrays,
                                 .row_items = by_rows ? args.num_items : args.num_arrays,
                                 .by_rows = by_rows,
                                 .init = args.init.As<T>()};
  if (params.num_items == 0) return cudaSuccess;
  constexpr int kItems = Vector<T>::kItems;
  const bool aligned = IsAligned(args.in) && IsAligned(args.out) && params.num_items % kItems == 0 &&
                       (by_rows || params.row_items % kItems == 0);
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(params.num_items, kThreads * (aligned ? kItems : 1), &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(aligned ? DifferenceBatchKernel<T, kReverse, kItems> : DifferenceBatchKernel<T, kReverse, 1>,
                num_blocks, kThreads, context->stream, params);
}

template <class T>
struct SegmentParams {
  const T* in;
  T* out;
  const uint64_t* offsets;
  uint64_t num_segments;
  T init;
};

// The items of segments that have no neighbour. A thread has a segment.
template <class T, bool kReverse>
__global__ void __launch_bounds__(kThreads) SegmentEdgesKernel(const SegmentParams<T> p) {
  const uint64_t segment = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (segment >= p.num_segments) return;
  const uint64_t begin = p.offsets[segment], end = p.offsets[segment + 1];
  if (begin >= end) return;
  const uint64_t item = kReverse ? end - 1 : begin;
  p.out[item] = Subtract(p.in[item], p.init);
}

// Needs: the differences of all items, as if they were one array, are enqueued.
template <class T, bool kReverse>
cudaError_t LaunchSegmentEdges(const DifferenceArgs& args, LaunchContext* context) {
  const SegmentParams<T> params = {.in = static_cast<const T*>(args.in),
                                   .out = static_cast<T*>(args.out),
                                   .offsets = args.offsets,
                                   .num_segments = args.num_arrays,
                                   .init = args.init.As<T>()};
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(args.num_arrays, kThreads, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(SegmentEdgesKernel<T, kReverse>, num_blocks, kThreads, context->stream, params);
}

template <class T, bool kReverse>
cudaError_t LaunchOf(const DifferenceArgs& args, LaunchContext* context) {
  if (args.offsets == nullptr && args.num_arrays > 1) return LaunchBatch<T, kReverse>(args, context);
  const DifferenceParams<T> params = {.in = static_cast<const T*>(args.in),
                                      .out = static_cast<T*>(args.out),
                                      .num_items = args.num_items,
                                      .init = args.init.As<T>(),
                                      .carry_in = static_cast<const T*>(args.carry_in),
                                      .carry_out = static_cast<T*>(args.carry_out)};
  uint32_t num_tiles = 0;
  constexpr uint64_t kTileItems = uint64_t{kThreads} * Vector<T>::kItems;
  cudaError_t error = CountTiles(args.num_items, kTileItems, &num_tiles);
  if (error != cudaSuccess) return error;
  if (IsAligned(args.in) && IsAligned(args.out)) {
    error = Launch(DifferenceKernel<T, kReverse>, num_tiles, kThreads, context->stream, params);
  } else {
    const AnywhereParams<T> anywhere = {params, MiddleOf<T, kReverse>(args)};
    error = Launch(DifferenceAnywhereKernel<T, kReverse>, num_tiles, kThreads, context->stream, anywhere);
  }
  if (error != cudaSuccess || args.offsets == nullptr) return error;
  return LaunchSegmentEdges<T, kReverse>(args, context);
}

template <class T>
cudaError_t LaunchEitherWay(const DifferenceArgs& args, LaunchContext* context) {
  return args.reverse ? LaunchOf<T, true>(args, context) : LaunchOf<T, false>(args, context);
}

}  // namespace

cudaError_t LaunchDifference(const DifferenceArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsFloating<T>) {
      return LaunchEitherWay<T>(args, context);
    } else {
      return LaunchEitherWay<std::make_unsigned_t<T>>(args, context);
    }
  });
}

}  // namespace prefixd::cuda
