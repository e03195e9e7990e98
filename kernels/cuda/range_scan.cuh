// Scan of segments, or of rows that begin anywhere, to the elements' type.
//
// A warp has a range (array_ranges.cuh), and works alone, leaf by leaf, whatever array a leaf is of (leaf_loads.cuh). A
// lane goes through its part of a leaf twice in shared memory: for the tree of its runs, and for the results, which
// take the items' places and go from there to memory, item next to item. Tiles of longer arrays are read twice: their
// value, for which other warps wait, is published before what stands before them is asked for. Traffic: reads n and the
// offsets, the offsets twice, writes n. Two launches, the first of which finds the ranges. In place: a leaf is read
// before it is written, by the same warp. Words that it has in common with others are read, but only its items of them
// count.
#ifndef PREFIXD_KERNELS_CUDA_RANGE_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_RANGE_SCAN_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/array_ranges.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/leaf_loads.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/segment_scan.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/cuda/warp_ranges.cuh"

namespace prefixd::cuda {

inline constexpr int kRangeScanThreads = 128;
inline constexpr int kRangeScanWarps = kRangeScanThreads / kWarpThreads;
template <class Item>
inline constexpr int kRangeScanBlocks = sizeof(Item) > 8 ? 4 : 5;  // On a multiprocessor, as registers suffice.

template <class T, Op kOp>
class RangeScan {
 public:
  using Params = SegmentScanParams<T, T>;
  using Operator = Operator<kOp, T>;
  using Item = typename Operator::Item;
  using Shape = LeafShape<T>;
  static constexpr size_t kSharedBytes = size_t{kRangeScanWarps} * Shape::kStepBytes;

  __device__ RangeScan(const Params& p, unsigned char* s_bytes)
      : p_(p),
        s_leaves_(s_bytes + WarpOfBlock() * Shape::kStepBytes),
        epoch_(p.states.Epoch()),
        start_(Operator::Load(p.init)),
        neutral_(Operator::Load(p.neutral)) {}

  __device__ void Run() {
    const WarpRanges ranges(p_.view, p_.states, p_.num_ranges, kRangeItems<T>);
    ranges.ForEach([&](const SplitTile& tile) { ScanTile(tile); },
                   [&](const Range& range) {
                     for (uint64_t array = range.first_array; array < range.end_array;) {
                       array = ScanArrays(range, array);
                     }
                   });
  }

 private:
  // What stands before a lane's part in the tree of its leaf, by levels of parts, and that tree, of all runs but the
  // last.
  struct Parts {
    static constexpr int kLevels = Shape::kLanes == 4 ? 2 : Shape::kLanes == 2 ? 1 : 0;
    Item before[kLevels + 1];
    Item tree;
  };

  __device__ void ScanTile(const SplitTile& tile) {
    const int num_items = tile.NumItems();
    const int begin = LaneOfWarp() * kLeafItems;
    Leaf leaf;
    if (begin < num_items) leaf = {begin, min(num_items - begin, kLeafItems)};
    const int num_leaves = (num_items + kLeafItems - 1) / kLeafItems;
    const LeafLoads<T> loads(p_.in + tile.At(), leaf, p_.in + p_.view.num_items);
    Item values = neutral_;
    for (int first = 0; first < num_leaves; first += Shape::kLeaves) {
      Load(loads, first, num_leaves);
      AddValues(loads, leaf, first, PartsOf(loads, leaf, first), &values);
    }
    const WarpJoined<Item> leaves = WarpJoins<Operator>(values, neutral_);
    const ArrayStates states(p_.states, epoch_, tile.begin);
    if (LaneOfWarp() == kWarpThreads - 1 && !tile.IsLast()) states.Publish(tile.tile, leaves.value);
    const TilePrefix<Item> prefix =
        states.LookBack<Operator>(tile.tile, ShuffleFrom(leaves.value, kWarpThreads - 1), start_, neutral_);
    const Item up_to = ShuffleFrom(leaves.value, LaneOfWarp() - 1);
    const Item previous = Operator::Combine(
        prefix.array, LaneOfWarp() == 0 ? prefix.previous_tile : Operator::Combine(prefix.group, up_to));
    // The last ones are still there.
    const int last = (num_leaves - 1) / Shape::kLeaves * Shape::kLeaves;
    for (int first = last; first >= 0; first -= Shape::kLeaves) {
      if (first < last) Load(loads, first, num_leaves);
      const Parts parts = PartsOf(loads, leaf, first);
      ScanLeaves<true>(loads, first, parts, leaves.before, previous, prefix.array, prefix.group);
      Store(p_.out + tile.At(), leaf, first, num_leaves);
    }
  }

  // Arrays of up to a tile, from the first on: as many as have 32 leaves together. Returns the one behind them.
  __device__ uint64_t ScanArrays(const Range& range, uint64_t first_array) {
    const WarpLeaves of(p_.view, range, first_array);
    const LeafLoads<T> loads(p_.in + range.begin, of.leaf, p_.in + p_.view.num_items);
    Item values = neutral_;
    for (int first = 0; first < of.all_leaves; first += Shape::kLeaves) {
      Load(loads, first, of.all_leaves);
      const Parts parts = PartsOf(loads, of.leaf, first);
      AddValues(loads, of.leaf, first, parts, &values);
      const Item before = BeforeLeaves(of, values);
      const Item up_to = ShuffleFrom(Operator::Combine(before, values), LaneOfWarp() - 1);
      const Item previous = of.leaf_of_array == 0 ? start_ : Operator::Combine(start_, up_to);
      ScanLeaves<false>(loads, first, parts, before, previous, start_, neutral_);
      Store(p_.out + range.begin, of.leaf, first, of.all_leaves);
    }
    return NextChunk(p_.view, range, first_array, of.num_arrays);
  }

  // Brings Shape::kLeaves leaves in.
  __device__ void Load(const LeafLoads<T>& loads, int first, int num_leaves) const {
    __syncwarp();  // All lanes have read what was there before.
    loads.Copy(first, num_leaves, SharedAddressOf(s_leaves_));
    CommitCopies();
    WaitForCopies<0>();
  }

  // The lane's part of a leaf: where its items are, of which the first may begin within a word.
  __device__ SharedAddress PartAddress(const LeafLoads<T>& loads, int first) const {
    const uint32_t begin = ShuffleFrom(loads.begin(), first + Shape::LeafOfLane());
    return SharedAddressOf(s_leaves_) + LaneOfWarp() * Shape::kLaneBytes + begin;
  }

  __device__ Parts PartsOf(const LeafLoads<T>& loads, const Leaf& leaf, int first) const {
    const int part = Shape::PartOfLane();
    const int last = LastSlot(ShuffleFrom(leaf.num_items, first + Shape::LeafOfLane()), kRunItems);
    Parts parts;
    parts.tree =
        TreeOfRuns<Operator, T, Shape::kLaneRuns>(PartAddress(loads, first), last - part * Shape::kLaneRuns, neutral_);
#pragma unroll
    for (int level = 0; level < Parts::kLevels; ++level) {
      const Item other = ShuffleFrom(parts.tree, LaneOfWarp() ^ (1 << level));
      const bool is_right = (part >> level & 1) != 0;
      parts.before[level] = is_right ? other : neutral_;
      parts.tree = CombineNeighbours<Operator>(is_right, parts.tree, other);
    }
    return parts;
  }

  // In the lanes that have one of the step's leaves: its value.
  __device__ void AddValues(const LeafLoads<T>& loads, const Leaf& leaf, int first, const Parts& parts,
                            Item* values) const {
    const int place = LaneOfWarp() - first;
    const Item before = ShuffleFrom(parts.tree, place * Shape::kLanes);
    if (place < 0 || place >= Shape::kLeaves || leaf.num_items == 0) return;
    const int begin = LastSlot(leaf.num_items, kRunItems) * kRunItems;
    const SharedAddress s_run = SharedAddressOf(s_leaves_) + Shape::PlaceOfItem(place, begin) + loads.begin();
    *values = Operator::Combine(before, ValueOfRun<Operator, T>(s_run, leaf.num_items - begin));
  }

  // The tree of the leaves before the lane's leaf in its array. values: of the leaves so far.
  __device__ Item BeforeLeaves(const WarpLeaves& of, Item values) const {
    constexpr int kFew = 3;
    const int first = LaneOfWarp() - of.leaf_of_array;
    Item before = neutral_;
#pragma unroll
    for (int i = 0; i < kFew; ++i) {
      const Item leaf = ShuffleFrom(values, first + i);
      if (i < of.leaf_of_array) before = Operator::Combine(before, leaf);
    }
    // Arrays with more, of which a lane has the leaf behind these.
    uint32_t lanes = __ballot_sync(kAllLanes, of.leaf.num_items > 0 && of.leaf_of_array == kFew + 1);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int begin = __ffs(static_cast<int>(lanes)) - 1 - (kFew + 1);
      const Item trees = WarpTrees<Operator>(ShuffleFrom(values, begin + LaneOfWarp()));
      const Item tree = ShuffleFrom(trees, of.leaf_of_array - 1);
      if (first == begin && of.leaf_of_array > kFew) before = tree;
    }
    return before;
  }

  // Turns the lane's items into results, in their places. Of each leaf: before_leaf, and `previous`, the result before
  // its first one.
  template <bool kInTile>
  __device__ void ScanLeaves(const LeafLoads<T>& loads, int first, const Parts& parts, Item before_leaf, Item previous,
                             Item array, Item group) const {
    p_.exclusive ? ScanLeaves<kInTile, true>(loads, first, parts, before_leaf, previous, array, group)
                 : ScanLeaves<kInTile, false>(loads, first, parts, before_leaf, previous, array, group);
  }
  template <bool kInTile, bool kExclusive>
  __device__ void ScanLeaves(const LeafLoads<T>& loads, int first, const Parts& parts, Item before_leaf, Item previous,
                             Item array, Item group) const {
    const int leaf = first + Shape::LeafOfLane();
    before_leaf = ShuffleFrom(before_leaf, leaf);
    previous = ShuffleFrom(previous, leaf);
    RunReader<T> reader(PartAddress(loads, first));
    T* const s_results = reinterpret_cast<T*>(s_leaves_ + LaneOfWarp() * Shape::kLaneBytes);
    Item blocks[Shape::kLaneRuns];
    // Where the order is free: of all items so far.
    Item up_to = Operator::Combine(Operator::Combine(array, group), before_leaf);
#pragma unroll
    for (int level = 0; level < Parts::kLevels; ++level) up_to = Operator::Combine(up_to, parts.before[level]);
    T result = {};
    // A NaN stays until the end of its array: if the last result is a number, all are.
    constexpr bool kNanStays = std::is_floating_point_v<Item> && std::is_same_v<Item, T>;
    __syncwarp();  // The last run of a leaf has been read.
#pragma unroll
    for (int r = 0; r < Shape::kLaneRuns; ++r) {
      T items[kRunItems];
      Item run[kRunItems];
      reader.Next(items);
      if constexpr (Operator::kAnyOrder) {
#pragma unroll
        for (int k = 0; k < kRunItems; ++k) {
          up_to = Operator::Combine(up_to, Operator::Load(items[k]));
          const T next = Operator::Store(up_to);
          if (!kExclusive || r + k > 0) s_results[r * kRunItems + k] = kExclusive ? result : next;
          result = next;
        }
        continue;
      }
      // What stands before the run in the part.
      Item before = neutral_;
#pragma unroll
      for (int width = 1; width < Shape::kLaneRuns; width *= 2) {
        if ((r & width) != 0) {
          const Item block = blocks[r & ~(2 * width - 1)];
          before = (r & (width - 1)) == 0 ? block : Operator::Combine(block, before);
        }
      }
#pragma unroll
      for (int level = 0; level < Parts::kLevels; ++level) {
        before = Operator::Combine(parts.before[level], before);
      }
      run[0] = Operator::Load(items[0]);
#pragma unroll
      for (int k = 1; k < kRunItems; ++k) run[k] = Operator::Combine(run[k - 1], Operator::Load(items[k]));
      blocks[r] = run[kRunItems - 1];
#pragma unroll
      for (int width = 1; width < Shape::kLaneRuns; width *= 2) {
        if ((r + 1) % (2 * width) == 0) {
          blocks[r + 1 - 2 * width] = Operator::Combine(blocks[r + 1 - 2 * width], blocks[r + 1 - width]);
        }
      }
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) {
        Item value = Operator::Combine(before_leaf, Operator::Combine(before, run[k]));
        if constexpr (kInTile) value = Operator::Combine(group, value);
        value = Operator::Combine(array, value);
        T next;
        if constexpr (kNanStays) {
          next = value;
        } else {
          next = Operator::Store(value);
        }
        if (!kExclusive || r + k > 0) s_results[r * kRunItems + k] = kExclusive ? result : next;
        result = next;
      }
    }
    if constexpr (kNanStays) {
      if (result != result) {
        for (int i = 0; i < Shape::kLaneItems; ++i) s_results[i] = Operator::Store(s_results[i]);
        result = Operator::Store(result);
      }
      __syncwarp();
    }
    if constexpr (kExclusive) {
      T before = Operator::Store(previous);
      if constexpr (Shape::kLanes > 1) {
        const T before_part = ShuffleFrom(result, LaneOfWarp() - 1);
        if (Shape::PartOfLane() > 0) before = before_part;
      }
      s_results[0] = before;
    }
  }

  // Takes out the results of Shape::kLeaves leaves.
  __device__ void Store(T* out, const Leaf& leaf, int first, int num_leaves) const {
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < Shape::kLeaves; ++i) {
      if (first + i >= num_leaves) break;
      T* const to = out + static_cast<uint32_t>(ShuffleFrom(leaf.at, first + i)) + LaneOfWarp();
      const int num_items = ShuffleFrom(leaf.num_items, first + i) - LaneOfWarp();
      T items[kLeafItems / kWarpThreads];
#pragma unroll
      for (int k = 0; k < kLeafItems / kWarpThreads; ++k) {
        const auto* const s_item = s_leaves_ + Shape::PlaceOfItem(i, k * kWarpThreads) + LaneOfWarp() * sizeof(T);
        items[k] = *reinterpret_cast<const T*>(s_item);
      }
#pragma unroll
      for (int k = 0; k < kLeafItems / kWarpThreads; ++k) {
        if (k * kWarpThreads < num_items) to[k * kWarpThreads] = items[k];
      }
    }
  }

  const Params& p_;
  unsigned char* const s_leaves_;  // The warp's.
  const uint32_t epoch_;
  const Item start_;
  const Item neutral_;
};

template <class T, Op kOp>
__global__ void __launch_bounds__(kRangeScanThreads, kRangeScanBlocks<typename Operator<kOp, T>::Item>)
    RangeScanKernel(const __grid_constant__ SegmentScanParams<T, T> p) {
  extern __shared__ __align__(16) unsigned char s_bytes[];
  RangeScan<T, kOp>(p, s_bytes).Run();
}

// Needs: RangesScan.
template <class T, Op kOp>
cudaError_t LaunchRangeScan(SegmentScanParams<T, T>& params, LaunchContext* context) {
  using Scan = RangeScan<T, kOp>;
  const cudaError_t error =
      PrepareRanges<typename Scan::Item>(kRangeItems<T>, context, &params.view, &params.num_ranges, &params.states);
  if (error != cudaSuccess) return error;
  const auto num_blocks =
      std::min<uint32_t>(params.num_ranges, kRangeScanBlocks<typename Scan::Item> * context->num_multiprocessors);
  return Launch(RangeScanKernel<T, kOp>, num_blocks, kRangeScanThreads, context->stream, params, Scan::kSharedBytes);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RANGE_SCAN_CUH_
