#include "kernels/cuda/array_ranges.cuh"

namespace prefixd::cuda {
namespace {

constexpr int kFindThreads = 128;

// The first array from `low` on that begins at the item or behind: `high` at the latest.
__device__ uint64_t Find(const ArrayView& view, uint64_t item, uint64_t low, uint64_t high) {
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (view.Begin(middle) < item) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A thread has a range. Those of a block look for arrays between what the block's ends found.
__global__ void __launch_bounds__(kFindThreads)
    FindRangesKernel(const ArrayView view, uint64_t range_items, uint64_t num_begins, RangeBegin* begins) {
  __shared__ uint64_t s_ends[2];
  const uint64_t first = uint64_t{blockIdx.x} * kFindThreads;
  const auto item_of = [&](uint64_t range) { return min(range * range_items, view.num_items); };
  if (threadIdx.x % kWarpThreads == 0 && threadIdx.x < 2 * kWarpThreads) {  // Two warps, at once.
    const uint32_t end = threadIdx.x / kWarpThreads;
    s_ends[end] = Find(view, item_of(first + end * kFindThreads), 0, view.num_arrays);
  }
  __syncthreads();
  const uint64_t range = first + threadIdx.x;
  if (range >= num_begins) return;
  const uint64_t array = Find(view, item_of(range), s_ends[0], s_ends[1]);
  begins[range] = {array, view.Begin(array), array == 0 ? 0 : view.Begin(array - 1)};
}

}  // namespace

cudaError_t FindRanges(uint64_t range_items, uint32_t num_ranges, LaunchContext* context, ArrayView* view) {
  if (view->offsets == nullptr) return cudaSuccess;
  const uint64_t num_begins = uint64_t{num_ranges} + 1;
  void* d_begins = nullptr;
  const cudaError_t error = context->scratch.Get(context->stream, num_begins * sizeof(RangeBegin), &d_begins);
  if (error != cudaSuccess) return error;
  auto* const begins = static_cast<RangeBegin*>(d_begins);
  const auto num_blocks = static_cast<uint32_t>((num_begins + kFindThreads - 1) / kFindThreads);
  FindRangesKernel<<<num_blocks, kFindThreads, 0, context->stream>>>(*view, range_items, num_begins, begins);
  view->ranges = begins;
  return cudaGetLastError();
}

}  // namespace prefixd::cuda
