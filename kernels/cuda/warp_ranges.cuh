// Ranges (array_ranges.cuh) that warps have, each by itself, and the leaves of a warp's arrays.
#ifndef PREFIXD_KERNELS_CUDA_WARP_RANGES_CUH_
#define PREFIXD_KERNELS_CUDA_WARP_RANGES_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/leaf_loads.cuh"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

class WarpRanges {
 public:
  __device__ WarpRanges(const ArrayView& view, const TileStates& states, uint32_t num_ranges, uint64_t range_items)
      : view_(view), states_(states), num_ranges_(num_ranges), range_items_(range_items) {}

  // Calls visit_tile(tile) and visit_arrays(range) for the ranges that the warp takes: for the tiles of longer arrays,
  // whose values other warps wait for, and for what else begins there. It looks up the next range while it works on
  // one. But before it waits for earlier tiles it takes none: a tile that it has not begun would keep others waiting.
  // Called by all threads of a block, once: the block reads no more states. Progress: as in look_back.cuh, for a warp
  // works on its ranges in their order.
  template <class VisitTile, class VisitArrays>
  __device__ void ForEach(VisitTile visit_tile, VisitArrays visit_arrays) const {
    uint32_t number = Take();
    RangeBegin begins = BeginsOf(number);
    while (number < num_ranges_) {
      const Range range = RangeOf(number, begins);
      for (int i = range.has_last ? 0 : 1; i < (range.has_earlier ? 2 : 1); ++i) {
        SplitTile tile = range.last;
        if (i != 0) tile = range.earlier;
        visit_tile(tile);
      }
      number = Take();
      begins = BeginsOf(number);
      visit_arrays(range);
    }
    __syncthreads();
    if (threadIdx.x == 0) states_.Leave();
  }

 private:
  __device__ uint32_t Take() const { return ShuffleFrom(LaneOfWarp() == 0 ? states_.TakeTile() : 0, 0); }
  // Where the range begins, in lane 0, and the one behind it, in lane 1.
  __device__ RangeBegin BeginsOf(uint32_t number) const {
    if (LaneOfWarp() > 1 || number >= num_ranges_) return {};
    return view_.BeginOfRange(number + LaneOfWarp(), range_items_);
  }
  __device__ Range RangeOf(uint32_t number, const RangeBegin& begins) const {
    const auto from = [&](int lane) {
      return RangeBegin{ShuffleFrom(begins.array, lane), ShuffleFrom(begins.begin, lane),
                        ShuffleFrom(begins.before, lane)};
    };
    return {view_, number, num_ranges_, range_items_, from(0), from(1)};
  }

  const ArrayView& view_;
  const TileStates& states_;
  const uint32_t num_ranges_;
  const uint64_t range_items_;
};

// Arrays of up to a tile that follow each other in a range: as many as have 32 leaves together. A lane has an array,
// and a leaf, which may be another's.
struct WarpLeaves {
  int num_arrays;     // So many lanes have an array; those of longer ones, and of none, have no leaves.
  int num_leaves;     // The lane's array's,
  int first_leaf;     // and the lane that has its first one.
  int all_leaves;     // All arrays have so many.
  Leaf leaf;          // The lane's, from where the range begins.
  int leaf_of_array;  // Its number in its array.

  // Called by a warp.
  __device__ WarpLeaves(const ArrayView& view, const Range& range, uint64_t first_array) {
    const uint64_t array = first_array + LaneOfWarp();
    ArrayBounds bounds = {};
    if (array < range.end_array) bounds = {view.Begin(array), view.Begin(array + 1)};
    const uint64_t length = bounds.end - bounds.begin;
    const int num_items = length <= kTileItems ? static_cast<int>(length) : 0;
    num_leaves = (num_items + kLeafItems - 1) / kLeafItems;
    const auto end_leaf = static_cast<int>(WarpTrees<CountSum>(static_cast<uint32_t>(num_leaves)));
    first_leaf = end_leaf - num_leaves;
    num_arrays = __popc(__ballot_sync(kAllLanes, end_leaf <= kWarpThreads));
    if (LaneOfWarp() >= num_arrays) num_leaves = 0;
    all_leaves = ShuffleFrom(end_leaf, num_arrays - 1);
    const int owner = OwnerOf();
    leaf_of_array = LaneOfWarp() - ShuffleFrom(first_leaf, owner);
    const int begin = leaf_of_array * kLeafItems;
    leaf = {ShuffleFrom(static_cast<int>(bounds.begin - range.begin), owner) + begin,
            min(ShuffleFrom(num_items, owner) - begin, kLeafItems)};
    if (LaneOfWarp() >= all_leaves) leaf = {};
  }

 private:
  // The lane whose array has the leaf with the lane's number, if there is one.
  __device__ int OwnerOf() const {
#if __CUDA_ARCH__ >= 800
    const uint32_t lanes = __ballot_sync(kAllLanes, num_leaves > 0);
    if ((lanes & (lanes + 1)) == 0 && lanes != 0) {  // None without leaves stands between them.
      const uint32_t firsts = __reduce_or_sync(kAllLanes, num_leaves > 0 ? 1u << first_leaf : 0);
      return __popc(firsts & kAllLanes >> (kWarpThreads - 1 - LaneOfWarp())) - 1;
    }
#endif
    int owner = 0;
#pragma unroll
    for (int step = kWarpThreads / 2; step > 0; step /= 2) {
      const int leaf_number = ShuffleFrom(first_leaf, owner + step);
      if (owner + step < num_arrays && leaf_number <= LaneOfWarp()) owner += step;
    }
    return owner;
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_WARP_RANGES_CUH_
