// How many of some ascending indices are in each segment. A thread has a segment, and looks for its ends: neighbours
// look at the same indices for the most part, which are in the cache.
#include <cstdint>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/launch.h"

namespace prefixd::cuda {
namespace {

template <class Index>
struct CountParams {
  const Index* indices;
  uint64_t num_indices;
  const uint64_t* offsets;
  uint64_t* counts;
  uint64_t num_items;
};

// The first from `low` on that is not below the offset.
template <class Index>
__device__ uint64_t Find(const Index* indices, uint64_t low, uint64_t high, uint64_t offset) {
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (indices[middle] < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class Index>
__global__ void __launch_bounds__(kGlueThreads) CountKernel(const CountParams<Index> p) {
  const uint64_t i = blockIdx.x * uint64_t{kGlueThreads} + threadIdx.x;
  if (i >= p.num_items) return;
  const uint64_t begin = p.offsets[i], end = p.offsets[i + 1];
  const uint64_t first = Find(p.indices, uint64_t{0}, p.num_indices, begin);
  // A segment has no more indices than elements.
  const uint64_t last = Find(p.indices, first, min(p.num_indices, first + (end - begin)), end);
  p.counts[i] = last - first;
}

template <class Index>
cudaError_t LaunchOf(const CountArgs& args, LaunchContext* context) {
  const CountParams<Index> params = {static_cast<const Index*>(args.indices), args.num_indices, args.offsets,
                                     args.counts, args.num_items};
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(args.num_items, kGlueThreads, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(CountKernel<Index>, num_blocks, kGlueThreads, context->stream, params);
}

}  // namespace

cudaError_t LaunchCount(const CountArgs& args, LaunchContext* context) {
  return args.index_dtype == DType::kU64 ? LaunchOf<uint64_t>(args, context) : LaunchOf<uint32_t>(args, context);
}

}  // namespace prefixd::cuda
