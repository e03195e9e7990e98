// out[i] = in[i] - in[i-1], at the speed of a copy: each element is read once from memory. A thread finds neighbours in
// its own vector and in the lane beside it; at the edge of a warp it reads the neighbour from the cache.
#include "kernels/cuda/difference.h"

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/operators.cuh"

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
  uint64_t num_items;  // In each array.
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
    return Canonical(a - b);
  } else {
    return static_cast<T>(a - b);
  }
}

// The element before the array, or behind a reversed one.
template <class T>
__device__ T Edge(const DifferenceParams<T>& params) {
  return params.carry_in != nullptr ? *params.carry_in : params.init;
}

// One item at a time, for tiles that are not whole or whose vectors are not aligned.
template <class T, bool kReverse>
__device__ void DifferenceItems(const DifferenceParams<T>& params, uint64_t first, uint64_t end, T edge) {
  const uint64_t last = params.num_items - 1;
  for (uint64_t i = first + threadIdx.x; i < end; i += kThreads) {
    const bool at_edge = kReverse ? i == last : i == 0;
    const T beside = at_edge ? edge : params.in[kReverse ? i + 1 : i - 1];
    params.out[i] = Subtract(params.in[i], beside);
  }
}

// The block at the edge also writes the carry, after all its threads have read the edge: carry_out may be carry_in,
// which no other block reads.
template <class T, bool kReverse, bool kAligned>
__global__ void __launch_bounds__(kThreads) DifferenceKernel(const DifferenceParams<T> params) {
  using V = Vector<T>;
  constexpr uint64_t kTileItems = uint64_t{kThreads} * V::kItems;
  const uint64_t tile = blockIdx.x * kTileItems;
  const uint64_t n = params.num_items;
  const bool has_edge = kReverse ? tile + kTileItems >= n : tile == 0;
  const T edge = has_edge ? Edge(params) : T{};
  if (kAligned && tile + kTileItems <= n) {
    const int lane = threadIdx.x % kWarpLanes;
    const uint64_t i = tile + uint64_t{threadIdx.x} * V::kItems;
    const V in = *reinterpret_cast<const V*>(params.in + i);
    T beside_warp = edge;
    if (!kReverse && lane == 0 && i > 0) beside_warp = params.in[i - 1];
    if (kReverse && lane == kWarpLanes - 1 && i + V::kItems < n) beside_warp = params.in[i + V::kItems];
    // Narrow types travel between lanes as words.
    using Word = std::conditional_t<sizeof(T) < 4, uint32_t, T>;
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
    DifferenceItems<T, kReverse>(params, tile, min(tile + kTileItems, n), edge);
  }
  if (!has_edge || params.carry_out == nullptr) return;
  __syncthreads();
  if (threadIdx.x == 0) *params.carry_out = n > 0 ? params.in[kReverse ? 0 : n - 1] : edge;
}

// A block for each array of a batch.
template <class T, bool kReverse>
__global__ void __launch_bounds__(kThreads) DifferenceBatchKernel(const DifferenceParams<T> params) {
  DifferenceParams<T> array = params;
  array.in += blockIdx.x * params.num_items;
  array.out += blockIdx.x * params.num_items;
  DifferenceItems<T, kReverse>(array, 0, params.num_items, params.init);
}

bool IsAligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kVectorBytes == 0; }

template <class T, bool kReverse>
cudaError_t LaunchOf(const DifferenceArgs& args, LaunchContext* context) {
  const DifferenceParams<T> params = {.in = static_cast<const T*>(args.in),
                                      .out = static_cast<T*>(args.out),
                                      .num_items = args.num_items,
                                      .init = args.init.As<T>(),
                                      .carry_in = static_cast<const T*>(args.carry_in),
                                      .carry_out = static_cast<T*>(args.carry_out)};
  if (args.num_arrays > 1) {
    return Launch(DifferenceBatchKernel<T, kReverse>, static_cast<uint32_t>(args.num_arrays), kThreads, context->stream,
                  params);
  }
  uint32_t num_tiles = 0;
  constexpr uint64_t kTileItems = uint64_t{kThreads} * Vector<T>::kItems;
  const cudaError_t error = CountTiles(args.num_items, kTileItems, &num_tiles);
  if (error != cudaSuccess) return error;
  const bool aligned = IsAligned(args.in) && IsAligned(args.out);
  return Launch(aligned ? DifferenceKernel<T, kReverse, true> : DifferenceKernel<T, kReverse, false>, num_tiles,
                kThreads, context->stream, params);
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
