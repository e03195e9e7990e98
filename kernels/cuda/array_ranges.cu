#include "kernels/cuda/array_ranges.cuh"

#include <bit>

namespace prefixd::cuda {
namespace {

constexpr int kFindThreads = 128;
constexpr int kWalkArrays = 4;  // For a thread.

struct FindParams {
  ArrayView view;
  int range_shift;  // A range has 1 << range_shift items.
  uint64_t num_ranges;
  RangeBegin* begins;
  bool walks;
  uint32_t num_find_blocks;  // Those behind them walk.
  unsigned char* values;     // EmptyArrays.
  int value_bytes;
  uint64_t value;
};

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
// That of all arrays. Called by a warp, whose lanes look at as many places at once: so it waits for memory four times
// where there are a million arrays, and not twenty times.
__device__ uint64_t FindByWarp(const ArrayView& view, uint64_t item) {
  uint64_t low = 0, high = view.num_arrays;
  while (low < high) {
    const uint64_t step = (high - low) / (kWarpThreads + 1) + 1;
    const uint64_t array = low + (LaneOfWarp() + 1) * step - 1;
    const uint32_t before = __ballot_sync(kAllLanes, array < high && view.Begin(array) < item);
    low += __popc(before) * step;
    high = min(high, low + step - 1);
  }
  return low;
}

__device__ RangeBegin BeginOf(const ArrayView& view, uint64_t array) {
  return {array, view.Begin(array), array == 0 ? 0 : view.Begin(array - 1)};
}

// A thread has a range. What the first and the last range of a block begin with, is looked for. If others walk, the
// ranges that begin with the same are the block's to write: an array may be that of all ranges.
__device__ void FindBegins(const FindParams& p) {
  __shared__ RangeBegin s_ends[2];
  const ArrayView& view = p.view;
  const uint64_t first = uint64_t{blockIdx.x} * kFindThreads;
  const auto item_of = [&](uint64_t range) { return min(range << p.range_shift, view.num_items); };
  if (WarpOfBlock() < 2) {  // At once.
    const uint64_t array = FindByWarp(view, item_of(first + WarpOfBlock() * (kFindThreads - 1)));
    if (LaneOfWarp() == 0) s_ends[WarpOfBlock()] = BeginOf(view, array);
  }
  __syncthreads();
  const uint64_t range = first + threadIdx.x;
  if (range > p.num_ranges) return;
  if (item_of(range) <= s_ends[0].begin) {
    p.begins[range] = s_ends[0];
  } else if (item_of(range) > s_ends[1].before) {
    p.begins[range] = s_ends[1];
  } else if (!p.walks) {
    p.begins[range] = BeginOf(view, Find(view, item_of(range), s_ends[0].array, s_ends[1].array));
  }
}

// A thread has arrays. It writes each to the ranges that begin with it, if they are within a block; and what an empty
// one comes to.
__device__ void Walk(const FindParams& p) {
  const ArrayView& view = p.view;
  const uint64_t first = uint64_t{blockIdx.x - p.num_find_blocks} * kFindThreads * kWalkArrays + threadIdx.x;
  // The range behind those that begin up to an item. The end of all begins with it.
  const auto behind = [&](uint64_t item) {
    return (item >= view.num_items ? p.num_ranges : item >> p.range_shift) + 1;
  };
  RangeBegin begins[kWalkArrays];
#pragma unroll
  for (int i = 0; i < kWalkArrays; ++i) {
    const uint64_t array = first + i * kFindThreads;
    if (array <= view.num_arrays) begins[i] = BeginOf(view, array);
  }
#pragma unroll
  for (int i = 0; i < kWalkArrays; ++i) {
    const RangeBegin& it = begins[i];
    if (first + i * kFindThreads > view.num_arrays || it.array == 0) continue;
    if (it.before == it.begin && p.values != nullptr) StoreBits(p.values, p.value_bytes, it.array - 1, p.value);
    const uint64_t begin = behind(it.before), end = behind(it.begin);
    if (!p.walks || begin / kFindThreads != (end - 1) / kFindThreads) continue;
    for (uint64_t range = begin; range < end; ++range) p.begins[range] = it;
  }
}

__global__ void __launch_bounds__(kFindThreads) FindRangesKernel(const FindParams p) {
  blockIdx.x < p.num_find_blocks ? FindBegins(p) : Walk(p);
}

}  // namespace

cudaError_t FindRanges(uint64_t range_items, uint32_t num_ranges, const EmptyArrays& empty, LaunchContext* context,
                       ArrayView* view) {
  if (view->offsets == nullptr) return cudaSuccess;
  const uint64_t num_begins = uint64_t{num_ranges} + 1;
  void* d_begins = nullptr;
  cudaError_t error = context->scratch.Get(context->stream, num_begins * sizeof(RangeBegin), &d_begins);
  if (error != cudaSuccess) return error;
  view->ranges = static_cast<RangeBegin*>(d_begins);
  FindParams params = {.view = *view,
                       .range_shift = std::countr_zero(range_items),
                       .num_ranges = num_ranges,
                       .begins = static_cast<RangeBegin*>(d_begins),
                       // Where they are short, more offsets would be read than ranges look at; where they are long,
                       // threads would have many ranges to write to.
                       .walks = !AreShort(view->num_items, view->num_arrays) && view->num_arrays > num_ranges,
                       .num_find_blocks = 0,
                       .values = static_cast<unsigned char*>(empty.values),
                       .value_bytes = static_cast<int>(SizeOf(empty.dtype)),
                       .value = empty.value.bits};
  uint32_t num_walk_blocks = 0;
  error = CountTiles(num_begins, kFindThreads, &params.num_find_blocks);
  if (error == cudaSuccess && (params.walks || empty.values != nullptr)) {
    error = CountTiles(view->num_arrays + 1, uint64_t{kFindThreads} * kWalkArrays, &num_walk_blocks);
  }
  if (error != cudaSuccess) return error;
  return Launch(FindRangesKernel, params.num_find_blocks + num_walk_blocks, kFindThreads, context->stream, params);
}

}  // namespace prefixd::cuda
