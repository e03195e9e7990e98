// Scan of arrays of any lengths that follow each other: segments, or rows that are few, long or read backwards; and of
// one that is read backwards, or not aligned.
//
// Where arrays keep a warp busy, on average, a warp has an array, unless that would take it longer than all others.
// Else, and for those, a block has a range (array_ranges.cuh), and scans it in shared memory: an array of several tiles
// by all warps, tile by tile, behind what a look-back finds.
//
// Traffic: reads n and the offsets, writes n. Up to three launches, without offsets one.
// In place: an element is read before it is written, by the same warp or block, and no other uses it.
#ifndef PREFIXD_KERNELS_CUDA_SEGMENT_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_SEGMENT_SCAN_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/array_prefix.cuh"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/short_rows.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In, class Out>
struct SegmentScanParams {
  ArrayView view;
  const In* in;
  Out* out;  // May be in.
  uint32_t num_ranges;
  Out init;
  Out neutral;
  bool exclusive;
  uint64_t max_warp_items;  // Arrays of more are left to blocks by ArrayScanKernel, which counts them in control->sum.
  bool only_long;           // Whether it has run.
  TileStates states;
};

// Ends what JoinRun began: the runs of a leaf that the lanes have become results, behind *prefix. kHasNext: whether a
// leaf follows, so that this one is whole. last: the value of the array up to the leaf.
template <class Operator, bool kExclusive, bool kHasNext, class Item, class Prefix>
__device__ void FinishLeaf(Item (&run)[kRunItems], Item before_run, int leaf, Prefix* prefix, Item* last) {
#pragma unroll
  for (int k = 0; k < kRunItems; ++k) run[k] = Operator::Combine(before_run, run[k]);
  const Item in_leaf = run[kRunItems - 1];
#pragma unroll
  for (int k = 0; k < kRunItems; ++k) run[k] = prefix->With(run[k]);
  if constexpr (kHasNext) prefix->Add(leaf, ShuffleFrom(in_leaf, kWarpThreads - 1));
  if constexpr (kExclusive) {
    Item previous = ShuffleFrom(run[kRunItems - 1], LaneOfWarp() - 1);
    if (LaneOfWarp() == 0) previous = *last;
    if constexpr (kHasNext) *last = ShuffleFrom(run[kRunItems - 1], kWarpThreads - 1);
#pragma unroll
    for (int k = kRunItems - 1; k > 0; --k) run[k] = run[k - 1];
    run[0] = previous;
  }
}
template <class Operator, bool kExclusive, bool kHasNext, class Item, class Prefix>
__device__ void ScanLeaf(Item (&run)[kRunItems], int leaf, Item neutral, Prefix* prefix, Item* last) {
  FinishLeaf<Operator, kExclusive, kHasNext>(run, JoinRun<Operator>(run, neutral), leaf, prefix, last);
}

// ---- A warp has an array -------------------------------------------------------------------------------------------
inline constexpr int kArrayScanWarps = 8;
inline constexpr int kArrayScanThreads = kArrayScanWarps * kWarpThreads;
// On a multiprocessor, at least.
template <class Out, bool kHasTiles>
inline constexpr int kArrayScanBlocks = (sizeof(Out) == 8 ? 4 : 6) - (kHasTiles ? 1 : 0);
// From here on, on average, warps have arrays of several tiles too: what stands before a leaf takes twice the registers
// then.
inline constexpr uint64_t kMinMeanItemsOfTiles = 1024;

template <class In, class Out, Op kOp, bool kHasTiles>
class ArrayScan {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Prefix = std::conditional_t<kHasTiles, ArrayPrefix<Operator>, ShortRowPrefix<Operator>>;

  // s_leaf: for the warp alone. A lane reads and writes items that stand far apart, as memory wants them, and has a
  // run.
  __device__ ArrayScan(const SegmentScanParams<In, Out>& p, uint64_t begin, int num_items, Run<Out>* s_leaf)
      : in_(p.in, p.view.num_items, begin, p.view.reverse),
        out_(p.out, p.view.num_items, begin, p.view.reverse),
        num_items_(num_items),
        s_leaf_(s_leaf),
        start_(Operator::Load(p.init)),
        neutral_(Operator::Load(p.neutral)) {}

  template <bool kExclusive>
  __device__ void Run() {
    Prefix prefix(start_, neutral_);
    Item last = start_;
    Load(0);
    int leaf = 0;
    for (; (leaf + 1) * kLeafItems < num_items_; ++leaf) ScanOne<kExclusive, true>(leaf, &prefix, &last);
    ScanOne<kExclusive, false>(leaf, &prefix, &last);
  }

 private:
  __device__ void Load(int leaf) {
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) {
      const int item = leaf * kLeafItems + k * kWarpThreads + LaneOfWarp();
      ahead_[k] = item < num_items_ ? in_[item] : In{};
    }
  }

  template <bool kExclusive, bool kHasNext>
  __device__ void ScanOne(int leaf, Prefix* prefix, Item* last) {
    auto* const s_items = reinterpret_cast<Out*>(s_leaf_);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) s_items[k * kWarpThreads + LaneOfWarp()] = static_cast<Out>(ahead_[k]);
    __syncwarp();
    prefixd::cuda::Run<Out> elements = s_leaf_[LaneOfWarp()];
    if constexpr (kHasNext) Load(leaf + 1);
    Item run[kRunItems];
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) run[k] = Operator::Load(elements.items[k]);
    ScanLeaf<Operator, kExclusive, kHasNext>(run, leaf, neutral_, prefix, last);
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) elements.items[k] = Operator::Store(run[k]);
    s_leaf_[LaneOfWarp()] = elements;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) {
      const int item = leaf * kLeafItems + k * kWarpThreads + LaneOfWarp();
      if (kHasNext || item < num_items_) out_[item] = s_items[k * kWarpThreads + LaneOfWarp()];
    }
  }

  const TileView<const In> in_;
  const TileView<Out> out_;
  const int num_items_;
  prefixd::cuda::Run<Out>* const s_leaf_;
  const Item start_;
  const Item neutral_;
  In ahead_[kRunItems];
};

template <class In, class Out, Op kOp, bool kHasTiles>
__global__ void __launch_bounds__(kArrayScanThreads, kArrayScanBlocks<Out, kHasTiles>)
    ArrayScanKernel(const __grid_constant__ SegmentScanParams<In, Out> p) {
  __shared__ Run<Out> s_leaves[kArrayScanWarps][kJoinSlots];
  const uint64_t array = uint64_t{blockIdx.x} * kArrayScanWarps + WarpOfBlock();
  if (array >= p.view.num_arrays) return;
  const uint64_t begin = p.view.Begin(array);
  const uint64_t num_items = p.view.Begin(array + 1) - begin;
  if (num_items == 0) return;
  if (num_items > p.max_warp_items) {
    if (LaneOfWarp() == 0) DeviceAtomic64(p.states.control->sum).fetch_add(1, ::cuda::memory_order_relaxed);
    return;
  }
  ArrayScan<In, Out, kOp, kHasTiles> scan(p, begin, static_cast<int>(num_items), s_leaves[WarpOfBlock()]);
  p.exclusive ? scan.template Run<true>() : scan.template Run<false>();
}

// ---- A block has ranges --------------------------------------------------------------------------------------------
// So many on a multiprocessor: registers for fewer would leave it without work while loads are on their way.
template <class Out>
inline constexpr int kSegmentScanBlocks = sizeof(Out) == 8 ? 3 : 4;

template <class Operator, class Out>
struct SegmentScanShared {
  using Item = typename Operator::Item;
  RangeItems<Out> range;  // Results take the places of the elements.
  Item leaf_values[kJoinSlots];
  LeafPrefix<Item> leaf_prefixes[kJoinSlots];
  TilePrefix<Item> tile_prefix;
};

template <class In, class Out, Op kOp>
class SegmentScan {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Shared = SegmentScanShared<Operator, Out>;

  __device__ SegmentScan(const SegmentScanParams<In, Out>& p, Shared& s)
      : p_(p), s_(s), epoch_(p.states.Epoch()), start_(Operator::Load(p.init)), neutral_(Operator::Load(p.neutral)) {}

  __device__ void Run() {
    Range range(p_.view, s_.range.TakeRange(p_.states), p_.num_ranges, kRangeItems<Out>);
    if (p_.only_long) {
      range.has_last &= range.last.end - range.last.begin > p_.max_warp_items;
      range.has_earlier &= range.earlier.end - range.earlier.begin > p_.max_warp_items;
    }
    if (!p_.only_long || range.has_last || range.has_earlier) ScanRange(range);
    if (threadIdx.x == 0) p_.states.Leave();
  }

 private:
  __device__ void ScanRange(const Range& range) {
    const ArrayBounds bounds = p_.only_long ? ArrayBounds() : BoundsOf(p_.view, range, range.first_array);
    s_.range.Load(p_.view, p_.in, range);
    __syncthreads();
    // First: other blocks wait for their values.
    if (range.has_last) ScanTile(range, range.last);
    if (range.has_earlier) ScanTile(range, range.earlier);
    if (p_.only_long) {
      if (range.has_last) s_.range.Store(p_.view, range, range.last.At(), range.last.End(), p_.out);
      if (range.has_earlier) s_.range.Store(p_.view, range, range.earlier.At(), range.earlier.End(), p_.out);
      return;
    }
    p_.exclusive ? ScanArrays<true>(range, bounds) : ScanArrays<false>(range, bounds);
    s_.range.Store(p_.view, range, range.begin, range.end, p_.out);
  }

  // Those that begin in the range and have no more than a tile.
  template <bool kExclusive>
  __device__ void ScanArrays(const Range& range, ArrayBounds bounds) {
    s_.range.ForArrays(
        p_.view, range, bounds,
        [&](Out* items, int num_items, uint64_t /*array*/) {
          ScanShortArray<Operator, kExclusive>(items, items, num_items, start_, neutral_);
        },
        [&](Out* items, int num_items, uint32_t /*array*/) { ScanByWarp<kExclusive>(items, num_items); });
  }

  template <bool kExclusive>
  __device__ void ScanByWarp(Out* items, int num_items) {
    ShortRowPrefix<Operator> prefix(start_, neutral_);
    Item last = start_;
    int leaf = 0;
    for (; (leaf + 1) * kLeafItems < num_items; ++leaf) {
      ScanOne<kExclusive, true>(items, num_items, leaf, &prefix, &last);
    }
    ScanOne<kExclusive, false>(items, num_items, leaf, &prefix, &last);
  }
  template <bool kExclusive, bool kHasNext>
  __device__ void ScanOne(Out* items, int num_items, int leaf, ShortRowPrefix<Operator>* prefix, Item* last) {
    const int first = leaf * kLeafItems + LaneOfWarp() * kRunItems;
    Item run[kRunItems];
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) {
      run[k] = Operator::Load(kHasNext || first + k < num_items ? items[first + k] : Out{});
    }
    ScanLeaf<Operator, kExclusive, kHasNext>(run, leaf, neutral_, prefix, last);
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) {
      if (kHasNext || first + k < num_items) items[first + k] = Operator::Store(run[k]);
    }
  }

  // Called by all threads, which meet before and after it. Not inline: the registers that it needs, the rest would
  // lack.
  __noinline__ __device__ void ScanTile(const Range& range, const SplitTile& tile) {
    constexpr int kRows = kJoinSlots / kRangeWarps;
    const int num_items = tile.NumItems();
    Out* const items = s_.range.items + RangeItems<Out>::Place(range, tile.At());
    Item runs[kRows][kRunItems];
    Item before_run[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int first = FirstOfRun(row);
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) {
        runs[row][k] = Operator::Load(first + k < num_items ? items[first + k] : Out{});
      }
      before_run[row] = JoinRun<Operator>(runs[row], neutral_);
      if (LaneOfWarp() == kWarpThreads - 1) {
        s_.leaf_values[LeafOf(row)] = Operator::Combine(before_run[row], runs[row][kRunItems - 1]);
      }
    }
    __syncthreads();
    if (WarpOfBlock() == 0) {
      const ArrayStates states(p_.states, epoch_, tile.begin);
      const WarpJoined<Item> leaves = WarpJoins<Operator>(s_.leaf_values[LaneOfWarp()], neutral_);
      if (LaneOfWarp() == kWarpThreads - 1 && !tile.IsLast()) states.Publish(tile.tile, leaves.value);
      s_.leaf_prefixes[LaneOfWarp()] = {leaves.before, ShuffleFrom(leaves.value, LaneOfWarp() - 1)};
      const TilePrefix<Item> prefix =
          states.LookBack<Operator>(tile.tile, ShuffleFrom(leaves.value, kWarpThreads - 1), start_, neutral_);
      if (LaneOfWarp() == 0) s_.tile_prefix = prefix;
    }
    __syncthreads();
    const TilePrefix<Item> prefix = s_.tile_prefix;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int first = FirstOfRun(row);
      const LeafPrefix<Item> leaf = s_.leaf_prefixes[LeafOf(row)];
      JoinArray<Operator>(runs[row], before_run[row], leaf.before, prefix);
      if (p_.exclusive) MoveByOne<Operator>(runs[row], LeafOf(row) == 0, leaf.up_to, prefix);
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) {
        if (first + k < num_items) items[first + k] = Operator::Store(runs[row][k]);
      }
    }
    __syncthreads();
  }
  static __device__ int LeafOf(int row) { return WarpOfBlock() * (kJoinSlots / kRangeWarps) + row; }
  static __device__ int FirstOfRun(int row) { return LeafOf(row) * kLeafItems + LaneOfWarp() * kRunItems; }

  const SegmentScanParams<In, Out>& p_;
  Shared& s_;
  const uint32_t epoch_;
  const Item start_;
  const Item neutral_;
};

template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kRangeThreads, kSegmentScanBlocks<Out>)
    SegmentScanKernel(const __grid_constant__ SegmentScanParams<In, Out> p) {
  using Scan = SegmentScan<In, Out, kOp>;
  extern __shared__ __align__(16) unsigned char s_bytes[];
  if (p.only_long && p.states.control->sum == 0) return;  // The same for all blocks.
  Scan(p, *reinterpret_cast<typename Scan::Shared*>(s_bytes)).Run();
}

// As a kernel has them, but for the ranges and their states.
template <class In, class Out, Op kOp>
SegmentScanParams<In, Out> SegmentScanParamsOf(const ScanArgs& args) {
  SegmentScanParams<In, Out> params = {.view = ViewOf(args),
                                       .in = static_cast<const In*>(args.in),
                                       .out = static_cast<Out*>(args.out),
                                       .num_ranges = 0,
                                       .init = args.init.As<Out>(),
                                       .neutral = NeutralOf<kOp, Out>(),
                                       .exclusive = args.kind == ScanKind::kExclusive,
                                       .max_warp_items = 0,
                                       .only_long = false,
                                       .states = {}};
  params.view.aligned = !args.reverse && reinterpret_cast<uintptr_t>(args.in) % 16 == 0 &&
                        reinterpret_cast<uintptr_t>(args.out) % 16 == 0;
  return params;
}

template <class In, class Out, Op kOp>
cudaError_t LaunchSegmentScan(const ScanArgs& args, SegmentScanParams<In, Out>& params, LaunchContext* context) {
  using Scan = SegmentScan<In, Out, kOp>;
  cudaError_t error =
      PrepareRanges<typename Scan::Item>(kRangeItems<Out>, context, &params.view, &params.num_ranges, &params.states);
  if (error != cudaSuccess) return error;
  const bool has_tiles = params.view.num_items / args.num_arrays >= kMinMeanItemsOfTiles;
  // No more than what every warp has to do anyway.
  constexpr uint64_t kWarps = 4096;
  params.max_warp_items = kTileItems;
  if (has_tiles) {
    params.max_warp_items = std::clamp<uint64_t>(params.view.num_items / kWarps, kTileItems, kGroupItems);
  }
  const bool fits_warps = args.offsets != nullptr || args.num_items <= params.max_warp_items;
  if (fits_warps && !AreShort(params.view.num_items, args.num_arrays)) {
    params.only_long = true;
    const auto num_blocks = static_cast<uint32_t>((args.num_arrays + kArrayScanWarps - 1) / kArrayScanWarps);
    error = Launch(has_tiles ? ArrayScanKernel<In, Out, kOp, true> : ArrayScanKernel<In, Out, kOp, false>, num_blocks,
                   kArrayScanThreads, context->stream, params);
    if (error != cudaSuccess || args.offsets == nullptr) return error;
  }
  return Launch(SegmentScanKernel<In, Out, kOp>, params.num_ranges, kRangeThreads, context->stream, params,
                sizeof(typename Scan::Shared));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SEGMENT_SCAN_CUH_
