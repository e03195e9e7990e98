// Items from and to indices. A bound is checked for every index, and no index beyond it reaches memory.
//
// Counting what is beyond costs an array of good indices next to nothing: a block says that it has looked at its
// indices while its items are on their way, and waits for nobody. The last one to say so writes the count.
#include <cstdint>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/look_back.cuh"

namespace prefixd::cuda {
namespace {

template <class T, class Index>
struct GatherParams {
  const T* in;
  const Index* indices;
  T* out;
  uint64_t num_items;
  uint64_t bound;
  uint64_t* num_bad;
  TileControl* control;
  bool aligned;
};

// A thread's items. A narrow item has as many bytes of indices, so that it takes more of them to keep memory busy.
template <class T>
inline constexpr int kGatherItems = sizeof(T) <= 2 ? 8 : 4;

// Loads count items, or as many as there are.
template <int kItems, class T>
__device__ Vector<T, kItems> LoadItems(const T* from, bool whole, int count) {
  if (whole) return *reinterpret_cast<const Vector<T, kItems>*>(from);
  Vector<T, kItems> v = {};
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (j < count) v.items[j] = from[j];
  }
  return v;
}

// Adds up what the block's threads found. Returns how many blocks did so before, to thread 0 alone.
__device__ uint32_t CountBad(TileControl* control, uint32_t num_bad) {
  __shared__ uint32_t bad_of_block;
  if (threadIdx.x == 0) bad_of_block = 0;
  if (__syncthreads_or(static_cast<int>(num_bad)) != 0) {
    atomicAdd(&bad_of_block, num_bad);
    __syncthreads();
    if (threadIdx.x == 0) {
      DeviceAtomic64(control->sum).fetch_add(bad_of_block, ::cuda::memory_order_relaxed);
      ::cuda::atomic_thread_fence(::cuda::memory_order_release, ::cuda::thread_scope_device);
    }
  }
  if (threadIdx.x != 0) return 0;
  return DeviceAtomic32(control->blocks_left).fetch_add(1, ::cuda::memory_order_relaxed);
}

// Called by thread 0 with what CountBad returned. The last block writes the sum and leaves everything at zero.
__device__ void Leave(TileControl* control, uint32_t before, uint64_t* num_bad) {
  if (before != gridDim.x - 1) return;
  ::cuda::atomic_thread_fence(::cuda::memory_order_acquire, ::cuda::thread_scope_device);
  *num_bad = DeviceAtomic64(control->sum).load(::cuda::memory_order_relaxed);
  control->sum = 0;
  control->blocks_left = 0;
}

template <class T, class Index, bool kGathers>
__global__ void __launch_bounds__(kGlueThreads) GatherKernel(const GatherParams<T, Index> p) {
  constexpr int kItems = kGatherItems<T>;
  const uint64_t i = (blockIdx.x * uint64_t{kGlueThreads} + threadIdx.x) * kItems;
  const uint64_t rest = i < p.num_items ? p.num_items - i : 0;
  const int count = rest < kItems ? static_cast<int>(rest) : kItems;
  const bool whole = p.aligned && count == kItems;
  const Vector<Index, kItems> indices = LoadItems<kItems>(p.indices + i, whole, count);
  Vector<T, kItems> items = {};
  if constexpr (!kGathers) items = LoadItems<kItems>(p.in + i, whole, count);
  uint32_t num_bad = 0;
#pragma unroll
  for (int j = 0; j < kItems; ++j) num_bad += j < count && indices.items[j] >= p.bound ? 1 : 0;
  const uint32_t before = CountBad(p.control, num_bad);
  if constexpr (kGathers) {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (j < count && indices.items[j] < p.bound) items.items[j] = p.in[indices.items[j]];
    }
    if (whole) {
      *reinterpret_cast<Vector<T, kItems>*>(p.out + i) = items;
    } else {
#pragma unroll
      for (int j = 0; j < kItems; ++j) {
        if (j < count) p.out[i + j] = items.items[j];
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (j < count && indices.items[j] < p.bound) p.out[indices.items[j]] = items.items[j];
    }
  }
  if (threadIdx.x == 0) Leave(p.control, before, p.num_bad);
}

// A scatter of items of 8 bytes. A warp's items follow each other, a thread's don't: where their places follow each
// other too, a store fills whole sectors. With four items a thread in a row memory was written at 0.67 of its speed.
template <class T, class Index>
__global__ void __launch_bounds__(kGlueThreads) ScatterWideKernel(const GatherParams<T, Index> p) {
  constexpr int kItems = kGatherItems<T>;
  const uint64_t first = blockIdx.x * uint64_t{kGlueThreads} * kItems + threadIdx.x;
  Index indices[kItems];
  T items[kItems];
  uint32_t num_bad = 0;
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    const uint64_t i = first + j * kGlueThreads;
    if (i >= p.num_items) continue;
    indices[j] = p.indices[i];
    items[j] = p.in[i];
  }
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (first + j * kGlueThreads < p.num_items && indices[j] >= p.bound) ++num_bad;
  }
  const uint32_t before = CountBad(p.control, num_bad);
#pragma unroll
  for (int j = 0; j < kItems; ++j) {
    if (first + j * kGlueThreads < p.num_items && indices[j] < p.bound) p.out[indices[j]] = items[j];
  }
  if (threadIdx.x == 0) Leave(p.control, before, p.num_bad);
}

// in: the items that out takes in order, of a gather; that are taken in order, of a scatter.
template <bool kGathers, class T, class Index, class Args>
cudaError_t LaunchOf(const Args& args, uint64_t bound, LaunchContext* context) {
  constexpr int kItems = kGatherItems<T>;
  GatherParams<T, Index> params = {.in = static_cast<const T*>(args.in),
                                   .indices = static_cast<const Index*>(args.indices),
                                   .out = static_cast<T*>(args.out),
                                   .num_items = args.num_items,
                                   .bound = bound,
                                   .num_bad = args.num_bad,
                                   .control = context->d_control,
                                   .aligned = false};
  const T* const in_order = kGathers ? params.out : params.in;
  params.aligned = HasVectors<Index, kItems>(params.indices) && HasVectors<T, kItems>(in_order);
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(args.num_items, uint64_t{kGlueThreads} * kItems, &num_blocks);
  if (error != cudaSuccess) return error;
  if constexpr (!kGathers && sizeof(T) == 8) {
    return Launch(ScatterWideKernel<T, Index>, num_blocks, kGlueThreads, context->stream, params);
  } else {
    return Launch(GatherKernel<T, Index, kGathers>, num_blocks, kGlueThreads, context->stream, params);
  }
}

template <bool kGathers, class Args>
cudaError_t LaunchByType(const Args& args, uint64_t bound, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = BitsOf<typename decltype(tag)::type>;
    return args.index_dtype == DType::kU64 ? LaunchOf<kGathers, T, uint64_t>(args, bound, context)
                                           : LaunchOf<kGathers, T, uint32_t>(args, bound, context);
  });
}

}  // namespace

cudaError_t LaunchGather(const GatherArgs& args, LaunchContext* context) {
  return LaunchByType<true>(args, args.in_items, context);
}
cudaError_t LaunchScatter(const ScatterArgs& args, LaunchContext* context) {
  return LaunchByType<false>(args, args.out_items, context);
}

}  // namespace prefixd::cuda
