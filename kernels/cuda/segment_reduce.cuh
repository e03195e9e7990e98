// Reduce of segments that are short, on average, to a value each.
//
// A block has a range (array_ranges.cuh), and reduces what begins there in shared memory. Who has the last tile of an
// array of several waits for the values of the others. Longer segments: range_reduce.cuh, row_reduce.cuh.
// Traffic: reads n and the offsets, the offsets twice, writes a value for each array. Two launches.
#ifndef PREFIXD_KERNELS_CUDA_SEGMENT_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_SEGMENT_REDUCE_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/array_reduce.cuh"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/reduce_parts.cuh"
#include "kernels/cuda/short_rows.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// On a multiprocessor.
template <class In>
inline constexpr int kSegmentReduceBlocks = sizeof(In) == 8 ? 3 : 4;

template <class In, class Out>
struct SegmentReduceParams {
  ArrayReduceParams<In, Out> arrays;
  ArrayView view;
  uint32_t num_ranges;
};

template <class Operator, class In>
struct SegmentReduceShared {
  RangeItems<In> range;
  typename Operator::Item leaf_values[kJoinSlots];
};

template <class In, class Out, Op kOp>
class SegmentReduce {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Shared = SegmentReduceShared<Operator, In>;

  __device__ SegmentReduce(const SegmentReduceParams<In, Out>& p, Shared& s)
      : p_(p),
        s_(s),
        states_(p.arrays.each.states),
        epoch_(states_.Epoch()),
        start_(FoldStart<kOp>(p.arrays.each, p.arrays.each.init)),
        neutral_(Operator::Load(p.arrays.each.neutral)) {}

  __device__ void Run() {
    const Range range(p_.view, s_.range.TakeRange(states_), p_.num_ranges, kRangeItems<In>);
    const ArrayBounds bounds = BoundsOf(p_.view, range, range.first_array);
    s_.range.Load(p_.view, p_.arrays.each.in, range);
    __syncthreads();
    // First: other blocks wait for their values.
    if (range.has_last) ReduceTile(range, range.last);
    if (range.has_earlier) ReduceTile(range, range.earlier);
    s_.range.ForArrays(
        p_.view, range, bounds,
        [&](const In* items, int num_items, uint64_t array) {
          StoreValue<kOp>(p_.arrays, array, OfThread(items, num_items));
        },
        [&](const In* items, int num_items, uint32_t array) {
          const Item value = OfWarp(items, num_items);
          if (LaneOfWarp() == 0) StoreValue<kOp>(p_.arrays, array, value);
        });
    if (threadIdx.x == 0) states_.Leave();
  }

 private:
  __device__ Item OfThread(const In* items, int num_items) const {
    ShortRowPrefix<Operator> prefix(start_, neutral_);
    for (int first = 0;; first += kRunItems) {
      Item run = Operator::Load(items[first]);
#pragma unroll
      for (int i = 1; i < kRunItems; ++i) {
        if (first + i < num_items) run = Operator::Combine(run, Operator::Load(items[first + i]));
      }
      if (first + kRunItems >= num_items) return prefix.With(run);
      prefix.Add(first / kRunItems, run);
    }
  }

  // The value of an array of up to a tile, behind the start.
  __device__ Item OfWarp(const In* items, int num_items) const {
    int begin = 0;
    if constexpr (Operator::kAnyOrder) {
      Item value = neutral_;
      for (; begin < num_items; begin += kLeafItems) {
        value = Operator::Combine(value, ValueOfRun(items + begin, num_items - begin));
      }
      return Operator::Combine(start_, WarpTotal<Operator>(value));
    } else {
      ShortRowPrefix<Operator> prefix(start_, neutral_);
      for (; begin + kLeafItems < num_items; begin += kLeafItems) {
        prefix.Add(begin / kLeafItems, ValueOfLeaf(items + begin, kLeafItems));
      }
      return prefix.With(ValueOfLeaf(items + begin, num_items - begin));
    }
  }
  // That of the lane's run of a leaf, or what there is of it; neutral if there is nothing.
  __device__ Item ValueOfRun(const In* leaf_items, int num_items) const {
    const int first = LaneOfWarp() * kRunItems;
    Item value = first < num_items ? Operator::Load(leaf_items[first]) : neutral_;
#pragma unroll
    for (int i = 1; i < kRunItems; ++i) {
      if (first + i < num_items) value = Operator::Combine(value, Operator::Load(leaf_items[first + i]));
    }
    return value;
  }
  __device__ Item ValueOfLeaf(const In* leaf_items, int num_items) const {
    return WarpJoin<Operator>(ValueOfRun(leaf_items, num_items), neutral_, LastSlot(num_items, kRunItems));
  }

  // Called by all threads, which meet before and after it.
  __device__ void ReduceTile(const Range& range, const SplitTile& tile) {
    const int num_items = tile.NumItems();
    const In* const items = s_.range.items + RangeItems<In>::Place(range, tile.At());
    for (int leaf = WarpOfBlock(); leaf < kJoinSlots; leaf += kRangeWarps) {
      const int begin = leaf * kLeafItems;
      const Item value = begin < num_items ? ValueOfLeaf(items + begin, num_items - begin) : neutral_;
      if (LaneOfWarp() == 0) s_.leaf_values[leaf] = value;
    }
    __syncthreads();
    if (WarpOfBlock() == 0) {
      const Item value = WarpJoin<Operator>(s_.leaf_values[LaneOfWarp()], neutral_, LastSlot(num_items, kLeafItems));
      const ArrayStates states(states_, epoch_, tile.begin);
      if (tile.IsLast()) {
        const Item array = states.Fold<Operator>(tile.tile, value, start_, neutral_);
        if (LaneOfWarp() == 0) StoreValue<kOp>(p_.arrays, tile.array, array);
      } else {
        states.PublishForFold<Operator>(tile.tile, value, neutral_);
      }
    }
    __syncthreads();
  }

  const SegmentReduceParams<In, Out>& p_;
  Shared& s_;
  const TileStates& states_;
  const uint32_t epoch_;
  const Item start_;
  const Item neutral_;
};

template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kRangeThreads, kSegmentReduceBlocks<In>)
    SegmentReduceKernel(const __grid_constant__ SegmentReduceParams<In, Out> p) {
  using Reduce = SegmentReduce<In, Out, kOp>;
  extern __shared__ __align__(16) unsigned char s_bytes[];
  Reduce(p, *reinterpret_cast<typename Reduce::Shared*>(s_bytes)).Run();
}

inline bool SegmentReduceServes(const ReduceArgs& args) {
  return args.offsets != nullptr && AreShort(args.num_items, args.num_arrays);
}

template <class In, class Out, Op kOp>
cudaError_t LaunchSegmentReduce(const ReduceArgs& args, LaunchContext* context) {
  using Reduce = SegmentReduce<In, Out, kOp>;
  SegmentReduceParams<In, Out> params = {
      .arrays = ArrayParamsOf<In, Out, kOp>(args), .view = ViewOf(args), .num_ranges = 0};
  const cudaError_t error = PrepareRanges<typename Reduce::Item>(kRangeItems<In>, context, &params.view,
                                                                 &params.num_ranges, &params.arrays.each.states,
                                                                 {args.values, args.output(), params.arrays.empty});
  if (error != cudaSuccess) return error;
  params.view.aligned = reinterpret_cast<uintptr_t>(args.in) % 16 == 0;
  return Launch(SegmentReduceKernel<In, Out, kOp>, params.num_ranges, kRangeThreads, context->stream, params,
                sizeof(typename Reduce::Shared));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SEGMENT_REDUCE_CUH_
