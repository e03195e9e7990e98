// Reduce of segments, or of rows that begin anywhere, to a value each.
//
// A warp has a range (array_ranges.cuh), and works alone. It reduces leaf by leaf, whatever array a leaf is of: so a
// warp is never without work for an array being short, and what it needs for each array it needs in a lane. Some leaves
// are worked on at once, each by a few lanes of which each has runs that follow each other. They come to shared memory
// in whole words, while the leaves before are worked on; a lane moves its items to where they belong.
// Traffic: reads n and the offsets, writes a value for each array. One launch; for segments another finds the ranges;
// and very many of them get the value of none first: all may be empty, and begin in one range.
#ifndef PREFIXD_KERNELS_CUDA_RANGE_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_RANGE_REDUCE_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/array_reduce.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/leaf_loads.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/reduce_parts.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In, class Out>
struct RangeReduceParams {
  ArrayReduceParams<In, Out> arrays;
  ArrayView view;
  uint32_t num_ranges;
};

inline constexpr int kRangeReduceThreads = 256;
inline constexpr int kRangeReduceWarps = kRangeReduceThreads / kWarpThreads;
template <class Item>
inline constexpr int kRangeReduceBlocks = sizeof(Item) > 8 ? 2 : 3;  // On a multiprocessor, as registers suffice.

template <class In, class Out, Op kOp>
class RangeReduce {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Shape = LeafShape<In>;
  static constexpr size_t kSharedBytes = size_t{kRangeReduceWarps} * Shape::kWarpBytes;

  __device__ RangeReduce(const RangeReduceParams<In, Out>& p, const unsigned char* s_bytes)
      : p_(p),
        s_steps_(SharedAddressOf(s_bytes) + WarpOfBlock() * Shape::kWarpBytes),
        states_(p.arrays.each.states),
        epoch_(states_.Epoch()),
        start_(FoldStart<kOp>(p.arrays.each, p.arrays.each.init)),
        neutral_(Operator::Load(p.arrays.each.neutral)) {}

  // The next range is taken, and looked up, while the warp works on one. Progress: as in look_back.cuh, for a warp
  // works on its ranges in their order.
  __device__ void Run() {
    uint32_t number = Take();
    RangeBegin begins = BeginsOf(number);
    while (number < p_.num_ranges) {
      const Range range = RangeOf(number, begins);
      number = Take();
      begins = BeginsOf(number);
      // First: other warps wait for their values.
      if (range.has_last) ReduceTile(range.last);
      if (range.has_earlier) ReduceTile(range.earlier);
      for (uint64_t array = range.first_array; array < range.end_array;) array = ReduceArrays(range, array);
    }
    __syncthreads();
    if (threadIdx.x == 0) states_.Leave();
  }

 private:
  __device__ uint32_t Take() const { return ShuffleFrom(LaneOfWarp() == 0 ? states_.TakeTile() : 0, 0); }
  // Where the range begins, in lane 0, and the one behind it, in lane 1.
  __device__ RangeBegin BeginsOf(uint32_t number) const {
    if (LaneOfWarp() > 1 || number >= p_.num_ranges) return {};
    return p_.view.BeginOfRange(number + LaneOfWarp(), kRangeItems<In>);
  }
  __device__ Range RangeOf(uint32_t number, const RangeBegin& begins) const {
    const auto from = [&](int lane) {
      return RangeBegin{ShuffleFrom(begins.array, lane), ShuffleFrom(begins.begin, lane),
                        ShuffleFrom(begins.before, lane)};
    };
    return {p_.view, number, p_.num_ranges, kRangeItems<In>, from(0), from(1)};
  }

  __device__ void ReduceTile(const SplitTile& tile) const {
    const int num_items = tile.NumItems();
    const int begin = LaneOfWarp() * kLeafItems;
    Leaf leaf;
    if (begin < num_items) leaf = {begin, min(num_items - begin, kLeafItems)};
    const int num_leaves = (num_items + kLeafItems - 1) / kLeafItems;
    const Item leaves = LeafValues(p_.arrays.each.in + tile.At(), leaf, num_leaves);
    const Item value = WarpJoin<Operator>(leaves, neutral_, num_leaves - 1);
    const ArrayStates states(states_, epoch_, tile.begin);
    if (!tile.IsLast()) return states.PublishForFold<Operator>(tile.tile, value, neutral_);
    const Item array = states.Fold<Operator>(tile.tile, value, start_, neutral_);
    if (LaneOfWarp() == 0) StoreValue<kOp>(p_.arrays, tile.array, array);
  }

  // Arrays of up to a tile, from the first on: as many as have 32 leaves together. Returns the one behind them. Lane l
  // has array l, and leaf l.
  __device__ uint64_t ReduceArrays(const Range& range, uint64_t first_array) const {
    const uint64_t array = first_array + LaneOfWarp();
    ArrayBounds bounds = {};
    if (array < range.end_array) bounds = {p_.view.Begin(array), p_.view.Begin(array + 1)};
    const uint64_t length = bounds.end - bounds.begin;
    const int num_items = length <= kTileItems ? static_cast<int>(length) : 0;
    const int num_leaves = (num_items + kLeafItems - 1) / kLeafItems;
    const auto end_leaf = static_cast<int>(WarpTrees<CountSum>(static_cast<uint32_t>(num_leaves)));
    const int first_leaf = end_leaf - num_leaves;
    const int num_arrays = __popc(__ballot_sync(kAllLanes, end_leaf <= kWarpThreads));
    const bool is_mine = LaneOfWarp() < num_arrays && array < range.end_array;
    if (is_mine && length == 0 && p_.arrays.num_arrays < kFilledArrays) {
      StoreBits(p_.arrays, array, p_.arrays.empty.bits);
    }
    const int all_leaves = ShuffleFrom(end_leaf, num_arrays - 1);
    if (all_leaves > 0) {
      const int owner = OwnerOf(first_leaf, num_arrays);
      const int begin = (LaneOfWarp() - ShuffleFrom(first_leaf, owner)) * kLeafItems;
      Leaf leaf = {ShuffleFrom(static_cast<int>(bounds.begin - range.begin), owner) + begin,
                   min(ShuffleFrom(num_items, owner) - begin, kLeafItems)};
      if (LaneOfWarp() >= all_leaves) leaf = {};
      const Item leaves = LeafValues(p_.arrays.each.in + range.begin, leaf, all_leaves);
      const Item value = Join(leaves, first_leaf, is_mine ? num_leaves : 0);
      if (is_mine && num_items > 0) StoreValue<kOp>(p_.arrays, array, Operator::Combine(start_, value));
    }
    return NextChunk(p_.view, range, first_array, num_arrays);
  }
  // The lane whose array has the leaf with the lane's number.
  static __device__ int OwnerOf(int first_leaf, int num_arrays) {
    int owner = 0;
#pragma unroll
    for (int step = kWarpThreads / 2; step > 0; step /= 2) {
      const int leaf = ShuffleFrom(first_leaf, owner + step);
      if (owner + step < num_arrays && leaf <= LaneOfWarp()) owner += step;
    }
    return owner;
  }
  // The value of the lane's array, if it has any leaves.
  __device__ Item Join(Item leaves, int first_leaf, int num_leaves) const {
    // Up to four join one after the other.
    constexpr int kFew = 4;
    Item value = ShuffleFrom(leaves, first_leaf);
#pragma unroll
    for (int i = 1; i < kFew; ++i) {
      const Item leaf = ShuffleFrom(leaves, first_leaf + i);
      if (i < num_leaves) value = Operator::Combine(value, leaf);
    }
    for (uint32_t lanes = __ballot_sync(kAllLanes, num_leaves > kFew); lanes != 0; lanes &= lanes - 1) {
      const int lane = __ffs(static_cast<int>(lanes)) - 1;
      const Item slots = ShuffleFrom(leaves, ShuffleFrom(first_leaf, lane) + LaneOfWarp());
      const Item joined = WarpJoin<Operator>(slots, neutral_, ShuffleFrom(num_leaves, lane) - 1);
      if (LaneOfWarp() == lane) value = joined;
    }
    return value;
  }

  // Lane l gets the value of the leaf that it knows of; neutral behind num_leaves.
  __device__ Item LeafValues(const In* in, const Leaf& leaf, int num_leaves) const {
    const LeafLoads<In> loads(in, leaf, p_.arrays.each.in + p_.view.num_items);
    Item values = neutral_;
    uint32_t step = 0;  // 0 or kStepBytes.
    __syncwarp();       // All lanes have read what was there before.
    loads.Copy(0, s_steps_);
    CommitCopies();
    for (int first = 0; first < num_leaves; first += Shape::kLeaves) {
      const uint32_t next_step = step ^ Shape::kStepBytes;
      if (first + Shape::kLeaves < num_leaves) loads.Copy(first + Shape::kLeaves, s_steps_ + next_step);
      CommitCopies();
      WaitForCopies<1>();
      const int mine = first + LaneOfWarp() / Shape::kLanes;
      const Item value = LeafValue(s_steps_ + step, loads.Begin(mine), loads.End(mine), loads.is_shifted());
      const auto place = static_cast<uint32_t>(LaneOfWarp() - first);
      const Item placed = ShuffleFrom(value, static_cast<int>(place) * Shape::kLanes);
      if (place < Shape::kLeaves) values = placed;
      step = next_step;
      __syncwarp();
    }
    return values;
  }
  // The value of the leaf that the lane has a part of. The others of its lanes get it too.
  __device__ Item LeafValue(SharedAddress s_step, int begin, int end, bool is_shifted) const {
    constexpr int kLaneRuns = Shape::kLaneRuns;
    In items[Shape::kLaneItems];
    LoadLeafItems(s_step, begin, is_shifted, items);
    const int num_items = (end - begin) / static_cast<int>(sizeof(In));
    const int lane = LaneOfWarp() % Shape::kLanes;
    const int last = LastSlot(num_items, kRunItems);
    Item runs[kLaneRuns];
#pragma unroll
    for (int r = 0; r < kLaneRuns; ++r) {
      Item run = Operator::Load(items[r * kRunItems]);
#pragma unroll
      for (int k = 1; k < kRunItems; ++k) run = Operator::Combine(run, Operator::Load(items[r * kRunItems + k]));
      runs[r] = lane * kLaneRuns + r < last ? run : neutral_;
    }
    const Item last_run = LastRun(items, last % kLaneRuns, num_items - last * kRunItems);
#pragma unroll
    for (int width = 1; width < kLaneRuns; width *= 2) {
#pragma unroll
      for (int r = 0; r < kLaneRuns; r += 2 * width) runs[r] = Operator::Combine(runs[r], runs[r + width]);
    }
    Item value = runs[0];
#pragma unroll
    for (int width = 1; width < Shape::kLanes; width *= 2) {
      const Item other = ShuffleFrom(value, LaneOfWarp() ^ width);
      value = CombineNeighbours<Operator>((lane & width) != 0, value, other);
    }
    return Operator::Combine(value, ShuffleFrom(last_run, LaneOfWarp() - lane + last / kLaneRuns));
  }
  // The lane's r-th run, of which num_items exist. The selections are such that items stay in registers.
  __device__ Item LastRun(const In (&items)[Shape::kLaneItems], int r, int num_items) const {
    In run[kRunItems];
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) {
      run[k] = r % 2 != 0 ? items[kRunItems + k] : items[k];
      if constexpr (Shape::kLaneRuns == 4) {
        const In upper = r % 2 != 0 ? items[3 * kRunItems + k] : items[2 * kRunItems + k];
        if (r >= 2) run[k] = upper;
      }
    }
    Item value = num_items > 0 ? Operator::Load(run[0]) : neutral_;
#pragma unroll
    for (int k = 1; k < kRunItems; ++k) {
      if (k < num_items) value = Operator::Combine(value, Operator::Load(run[k]));
    }
    return value;
  }

  const RangeReduceParams<In, Out>& p_;
  const SharedAddress s_steps_;  // The warp's two.
  const TileStates& states_;
  const uint32_t epoch_;
  const Item start_;
  const Item neutral_;
};

template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kRangeReduceThreads, kRangeReduceBlocks<typename Operator<kOp, Out>::Item>)
    RangeReduceKernel(const __grid_constant__ RangeReduceParams<In, Out> p) {
  extern __shared__ __align__(16) unsigned char s_bytes[];
  RangeReduce<In, Out, kOp>(p, s_bytes).Run();
}

// Needs: RangesReduce.
template <class In, class Out, Op kOp>
cudaError_t LaunchRangeReduce(const ReduceArgs& args, LaunchContext* context) {
  using Item = typename Operator<kOp, Out>::Item;
  RangeReduceParams<In, Out> params = {
      .arrays = ArrayParamsOf<In, Out, kOp>(args), .view = ViewOf(args), .num_ranges = 0};
  cudaError_t error =
      PrepareRanges<Item>(kRangeItems<In>, context, &params.view, &params.num_ranges, &params.arrays.each.states);
  if (error == cudaSuccess && args.num_arrays >= kFilledArrays && args.offsets != nullptr) {
    error = LaunchFill(
        {.dtype = args.output(), .value = params.arrays.empty, .out = args.values, .num_items = args.num_arrays},
        context);
  }
  if (error != cudaSuccess) return error;
  const auto num_blocks =
      std::min<uint32_t>(params.num_ranges, kRangeReduceBlocks<Item> * context->num_multiprocessors);
  return Launch(RangeReduceKernel<In, Out, kOp>, num_blocks, kRangeReduceThreads, context->stream, params,
                RangeReduce<In, Out, kOp>::kSharedBytes);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RANGE_REDUCE_CUH_
