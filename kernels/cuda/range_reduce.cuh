// Reduce of segments, or of rows that begin anywhere, to a value each.
//
// A warp has a range (array_ranges.cuh), and works alone. It reduces leaf by leaf, whatever array a leaf is of
// (leaf_loads.cuh): so a warp is never without work for an array being short, and what it needs for each array it needs
// in a lane.
// Traffic: reads n and the offsets, the offsets twice, writes a value for each array. One launch; for segments another
// finds the ranges, and writes the values of empty ones.
#ifndef PREFIXD_KERNELS_CUDA_RANGE_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_RANGE_REDUCE_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/array_reduce.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/leaf_loads.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/reduce_parts.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/cuda/warp_ranges.cuh"

namespace prefixd::cuda {

template <class In, class Out>
struct RangeReduceParams {
  ArrayReduceParams<In, Out> arrays;
  ArrayView view;
  uint32_t num_ranges;
};

inline constexpr int kRangeReduceThreads = 128;
inline constexpr int kRangeReduceWarps = kRangeReduceThreads / kWarpThreads;
template <class Item>
inline constexpr int kRangeReduceBlocks = sizeof(Item) > 8 ? 4 : 5;  // On a multiprocessor, as registers suffice.

template <class In, class Out, Op kOp>
class RangeReduce {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Shape = LeafShape<In>;
  static constexpr size_t kSharedBytes = size_t{kRangeReduceWarps} * Shape::kStepBytes;

  __device__ RangeReduce(const RangeReduceParams<In, Out>& p, const unsigned char* s_bytes)
      : p_(p),
        s_leaves_(SharedAddressOf(s_bytes) + WarpOfBlock() * Shape::kStepBytes),
        states_(p.arrays.each.states),
        epoch_(states_.Epoch()),
        start_(FoldStart<kOp>(p.arrays.each, p.arrays.each.init)),
        neutral_(Operator::Load(p.arrays.each.neutral)) {}

  __device__ void Run() {
    const WarpRanges ranges(p_.view, states_, p_.num_ranges, kRangeItems<In>);
    ranges.ForEach([&](const SplitTile& tile) { ReduceTile(tile); },
                   [&](const Range& range) {
                     for (uint64_t array = range.first_array; array < range.end_array;) {
                       array = ReduceArrays(range, array);
                     }
                   });
  }

 private:
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

  // Arrays of up to a tile, from the first on: as many as have 32 leaves together. Returns the one behind them.
  __device__ uint64_t ReduceArrays(const Range& range, uint64_t first_array) const {
    const WarpLeaves of(p_.view, range, first_array);
    if (of.all_leaves > 0) {
      const Item leaves = LeafValues(p_.arrays.each.in + range.begin, of.leaf, of.all_leaves);
      const Item value = Join(leaves, of.first_leaf, of.num_leaves);
      if (of.num_leaves > 0) {
        StoreValue<kOp>(p_.arrays, first_array + LaneOfWarp(), Operator::Combine(start_, value));
      }
    }
    return NextChunk(p_.view, range, first_array, of.num_arrays);
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
    const int last_run = LastSlot(leaf.num_items, kRunItems);
    Item values = neutral_;
    for (int first = 0; first < num_leaves; first += Shape::kLeaves) {
      __syncwarp();  // All lanes have read what was there before.
      loads.Copy(first, num_leaves, s_leaves_);
      CommitCopies();
      WaitForCopies<0>();
      const int mine = first + Shape::LeafOfLane(), part = Shape::PartOfLane();
      const SharedAddress s_part =
          PlaceOf(Shape::LeafOfLane(), part * Shape::kLaneItems, ShuffleFrom(loads.begin(), mine));
      Item tree = TreeOfRuns<Operator, In, Shape::kLaneRuns>(
          s_part, ShuffleFrom(last_run, mine) - part * Shape::kLaneRuns, neutral_);
#pragma unroll
      for (int width = 1; width < Shape::kLanes; width *= 2) {
        const Item other = ShuffleFrom(tree, LaneOfWarp() ^ width);
        tree = CombineNeighbours<Operator>((part & width) != 0, tree, other);
      }
      const int place = LaneOfWarp() - first;
      const Item before = ShuffleFrom(tree, place * Shape::kLanes);
      if (place >= 0 && place < Shape::kLeaves && leaf.num_items > 0) {
        const int begin = last_run * kRunItems;
        const SharedAddress s_run = PlaceOf(place, begin, loads.begin());
        values = Operator::Combine(before, ValueOfRun<Operator, In>(s_run, leaf.num_items - begin));
      }
    }
    return values;
  }
  // Where an item of a leaf is. begin: the leaf's first byte in its first word.
  __device__ SharedAddress PlaceOf(int leaf, int item, uint32_t begin) const {
    return s_leaves_ + Shape::PlaceOfItem(leaf, item) + begin;
  }

  const RangeReduceParams<In, Out>& p_;
  const SharedAddress s_leaves_;  // The warp's.
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
  const cudaError_t error =
      PrepareRanges<Item>(kRangeItems<In>, context, &params.view, &params.num_ranges, &params.arrays.each.states,
                          {args.values, args.output(), params.arrays.empty});
  if (error != cudaSuccess) return error;
  const auto num_blocks =
      std::min<uint32_t>(params.num_ranges, kRangeReduceBlocks<Item> * context->num_multiprocessors);
  return Launch(RangeReduceKernel<In, Out, kOp>, num_blocks, kRangeReduceThreads, context->stream, params,
                RangeReduce<In, Out, kOp>::kSharedBytes);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RANGE_REDUCE_CUH_
