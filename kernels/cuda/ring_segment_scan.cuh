// Scan of arrays of any lengths that follow each other, at the speed of memory, for sm_90 and later (ring_ranges.cuh).
//
// Beside the roles of all such kernels there are
//   scan   16 warps in two teams, which have every other stage: turn it into its results, in place. To come to a stage
//          costs a warp some 80 instructions (ncu), whatever it finds there, so half as many come to each
//   store  one warp: writes the results, and frees the stage
// Traffic: reads n and the offsets, writes n. Two launches, the first of which finds the ranges.
// In place: a stage is loaded before it is written. Words that two ranges share are written item by item.
#ifndef PREFIXD_KERNELS_CUDA_RING_SEGMENT_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_RING_SEGMENT_SCAN_CUH_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ring_ranges.cuh"
#include "kernels/cuda/segment_scan.cuh"

namespace prefixd::cuda {

template <class T, Op kOp>
struct RingSegmentScanShared : RingRangesShared<T> {
  using Base = RingRangesShared<T>;
  using Item = typename Operator<kOp, T>::Item;

  LeafPrefix<Item> leaf_prefixes[Base::kStages][Base::Shape::kRangeTiles][kJoinSlots];
  TilePrefix<Item> tile_prefixes[Base::kStages][Base::Shape::kRangeTiles];
  Barrier joined[Base::kStages];  // The tile warps are done with the stage.
  Barrier scanned[Base::kStages];
};

template <class T, Op kOp>
class RingSegmentScan {
 public:
  using Params = SegmentScanParams<T, T>;
  using Shared = RingSegmentScanShared<T, kOp>;
  using Shape = typename Shared::Shape;
  using Operator = Operator<kOp, T>;
  using Item = typename Operator::Item;
  static constexpr int kScanWarps = 16;
  static constexpr int kTeams = 2;
  static constexpr int kTeamWarps = kScanWarps / kTeams;
  static constexpr int kStoreWarp = Shape::kTileWarps + kScanWarps;
  static constexpr int kLoadWarp = kStoreWarp + 1;
  static constexpr int kThreads = (kLoadWarp + 1) * kWarpThreads;

  __device__ RingSegmentScan(const Params& p, Shared& s)
      : p_(p),
        s_(s),
        ranges_(p, p.in, s),
        epoch_(p.states.Epoch()),
        start_(Operator::Load(p.init)),
        neutral_(Operator::Load(p.neutral)) {}

  __device__ void Run() {
    if (threadIdx.x == 0) {
      s_.ring.Init(/*num_freeing_warps=*/1);
      for (int i = 0; i < Shape::kStages; ++i) {
        s_.joined[i].Init(Shape::kTileWarps * kWarpArrivals);
        s_.scanned[i].Init(kTeamWarps * kWarpArrivals);
      }
      FenceBarrierInit();
    }
    __syncthreads();
    const int warp = WarpOfBlock();
    if (warp < Shape::kTileWarps) {
      ranges_.ForTiles(warp, s_.joined,
                       [&](Position at, int slot, const SplitTile& tile) { JoinTile(at.stage, slot, tile); });
    } else if (warp < kStoreWarp) {
      const int scan_warp = warp - Shape::kTileWarps;
      p_.exclusive ? Scan<true>(scan_warp / kTeamWarps, scan_warp % kTeamWarps)
                   : Scan<false>(scan_warp / kTeamWarps, scan_warp % kTeamWarps);
    } else if (warp == kStoreWarp) {
      Store();
      if (LaneOfWarp() == 0) p_.states.Leave();
    } else {
      ranges_.Load();
    }
  }

 private:
  using Position = RingPosition<Shape::kStages>;

  // ---- Tile ----
  __device__ void JoinTile(uint32_t stage, int slot, const SplitTile& tile) {
    const Item leaf = LeafValues<Operator>(s_.ItemAt(s_.stages[stage], static_cast<uint32_t>(tile.At())),
                                           tile.NumItems(), lane_items_, neutral_);
    const ArrayStates states(p_.states, epoch_, tile.begin);
    const WarpJoined<Item> leaves = WarpJoins<Operator>(leaf, neutral_);
    if (LaneOfWarp() == kWarpThreads - 1 && !tile.IsLast()) states.Publish(tile.tile, leaves.value);
    s_.leaf_prefixes[stage][slot][LaneOfWarp()] = {leaves.before, ShuffleFrom(leaves.value, LaneOfWarp() - 1)};
    const TilePrefix<Item> prefix =
        states.LookBack<Operator>(tile.tile, ShuffleFrom(leaves.value, kWarpThreads - 1), start_, neutral_);
    if (LaneOfWarp() == 0) s_.tile_prefixes[stage][slot] = prefix;
  }

  // ---- Scan ----
  template <bool kExclusive>
  __device__ void Scan(int team, int warp) {
    const auto scan = [&](Position at, const RangeStage& stage) {
      ranges_.template ForArrays<kTeamWarps>(
          stage, warp,
          [&](T* items, int num_items) {
            ScanShortArray<Operator, kExclusive>(items, items, num_items, start_, neutral_);
          },
          [&](T* items, int num_items) { ScanArray<kExclusive>(items, num_items); });
      if (stage.range.has_earlier) ScanTile<kExclusive>(at, 0, stage.range.earlier, warp);
      if (stage.range.has_last) ScanTile<kExclusive>(at, 1, stage.range.last, warp);
      s_.joined[at.stage].Wait(at.parity);
      FenceBeforeBulkStore();
      ArriveAsWarp(s_.scanned[at.stage]);
    };
    ranges_.template ForEachStage<kTeams>(scan, team);
  }

  // An array of up to a tile, by a warp: where registers suffice two leaves at a time, which hide each other's waiting.
  static constexpr int kLeavesAtOnce = sizeof(Item) > 4 ? 1 : 2;

  template <bool kExclusive>
  __device__ void ScanArray(T* items, int num_items) {
    ShortRowPrefix<Operator> prefix(start_, neutral_);
    Item last = start_;
    // The compiler knows what stands before the first ones.
    if (num_items <= kLeavesAtOnce * kLeafItems) return ScanLast<kExclusive>(items, num_items, 0, &prefix, &last);
    ScanLeaves<kExclusive, kLeavesAtOnce, true>(items, num_items, 0, &prefix, &last);
    int leaf = kLeavesAtOnce;
    for (; (leaf + kLeavesAtOnce) * kLeafItems < num_items; leaf += kLeavesAtOnce) {
      ScanLeaves<kExclusive, kLeavesAtOnce, true>(items, num_items, leaf, &prefix, &last);
    }
    ScanLast<kExclusive>(items, num_items, leaf, &prefix, &last);
  }
  template <bool kExclusive>
  __device__ void ScanLast(T* items, int num_items, int leaf, ShortRowPrefix<Operator>* prefix, Item* last) {
    if (kLeavesAtOnce > 1 && (leaf + 1) * kLeafItems < num_items) {
      ScanLeaves<kExclusive, kLeavesAtOnce, false>(items, num_items, leaf, prefix, last);
    } else {
      ScanLeaves<kExclusive, 1, false>(items, num_items, leaf, prefix, last);
    }
  }
  // kHasNext: whether leaves follow, so that all of these are whole. Else the last may be cut short.
  template <bool kExclusive, int kLeaves, bool kHasNext>
  __device__ void ScanLeaves(T* items, int num_items, int first, ShortRowPrefix<Operator>* prefix, Item* last) {
    T elements[kLeaves][kRunItems];
    Item runs[kLeaves][kRunItems];
    Item before_runs[kLeaves];
#pragma unroll
    for (int i = 0; i < kLeaves; ++i) {
      const int begin = (first + i) * kLeafItems;
      kHasNext || i + 1 < kLeaves ? lane_items_.template Load<true>(items + begin, num_items - begin, elements[i])
                                  : lane_items_.template Load<false>(items + begin, num_items - begin, elements[i]);
    }
#pragma unroll
    for (int i = 0; i < kLeaves; ++i) {
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) runs[i][k] = Operator::Load(elements[i][k]);
      before_runs[i] = JoinRun<Operator>(runs[i], neutral_);
    }
#pragma unroll
    for (int i = 0; i < kLeaves; ++i) {
      T* const s_leaf = items + (first + i) * kLeafItems;
      const int num_valid = num_items - (first + i) * kLeafItems;
      if (kHasNext || i + 1 < kLeaves) {
        FinishLeaf<Operator, kExclusive, true>(runs[i], before_runs[i], first + i, prefix, last);
        StoreRun(runs[i], elements[i]);
        lane_items_.template Store<true>(s_leaf, num_valid, elements[i]);
      } else {
        FinishLeaf<Operator, kExclusive, false>(runs[i], before_runs[i], first + i, prefix, last);
        StoreRun(runs[i], elements[i]);
        lane_items_.template Store<false>(s_leaf, num_valid, elements[i]);
      }
    }
  }
  static __device__ void StoreRun(const Item (&run)[kRunItems], T (&elements)[kRunItems]) {
    if constexpr (std::is_floating_point_v<Item> && std::is_same_v<Item, T>) {
      // A NaN stays until the end of its array: where the last result is a number, all are.
      const bool has_nan = run[kRunItems - 1] != run[kRunItems - 1];
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) elements[k] = run[k];
      if (!has_nan) return;
    }
#pragma unroll
    for (int k = 0; k < kRunItems; ++k) elements[k] = Operator::Store(run[k]);
  }

  template <bool kExclusive>
  __device__ void ScanTile(Position at, int slot, const SplitTile& tile, int warp) {
    tile.NumItems() == kTileItems ? ScanTile<kExclusive, true>(at, slot, tile, warp)
                                  : ScanTile<kExclusive, false>(at, slot, tile, warp);
  }
  // The warp's leaves of a tile of a long array, two at a time. The first two join their runs before the tile's prefix
  // is waited for.
  template <bool kExclusive, bool kWhole>
  __device__ void ScanTile(Position at, int slot, const SplitTile& tile, int warp) {
    constexpr int kLeaves = 2;
    T* const items = s_.ItemAt(s_.stages[at.stage], static_cast<uint32_t>(tile.At()));
    const int num_items = kWhole ? kTileItems : tile.NumItems();
#pragma unroll 1
    for (int first = warp * kLeaves; first < kJoinSlots; first += kTeamWarps * kLeaves) {
      T elements[kLeaves][kRunItems];
      Item runs[kLeaves][kRunItems];
      Item before_runs[kLeaves];
#pragma unroll
      for (int i = 0; i < kLeaves; ++i) {
        const int begin = (first + i) * kLeafItems;
        lane_items_.template Load<kWhole>(items + begin, num_items - begin, elements[i]);
      }
#pragma unroll
      for (int i = 0; i < kLeaves; ++i) {
#pragma unroll
        for (int k = 0; k < kRunItems; ++k) runs[i][k] = Operator::Load(elements[i][k]);
        before_runs[i] = JoinRun<Operator>(runs[i], neutral_);
      }
      s_.joined[at.stage].Wait(at.parity);
      const TilePrefix<Item> prefix = s_.tile_prefixes[at.stage][slot];
#pragma unroll
      for (int i = 0; i < kLeaves; ++i) {
        const int leaf = first + i;
        const LeafPrefix<Item> before_leaf = s_.leaf_prefixes[at.stage][slot][leaf];
        JoinArray<Operator>(runs[i], before_runs[i], before_leaf.before, prefix);
        if constexpr (kExclusive) MoveByOne<Operator>(runs[i], leaf == 0, before_leaf.up_to, prefix);
        StoreRun(runs[i], elements[i]);
        lane_items_.template Store<kWhole>(items + leaf * kLeafItems, num_items - leaf * kLeafItems, elements[i]);
      }
    }
  }

  // ---- Store: one warp ----
  __device__ void Store() {
    uint32_t stored = 0;  // The stage before, which is being read.
    bool has_stored = false;
    ranges_.ForEachStage([&](Position at, const RangeStage& stage) {
      s_.scanned[at.stage].Wait(at.parity);
      StoreRange(stage.range, reinterpret_cast<const T*>(s_.buffer + stage.items));
      if (LaneOfWarp() == 0) {
        CommitStores();
        WaitForStoresToRead<1>();
      }
      if (has_stored) ArriveAsWarp(s_.ring.freed[stored]);
      stored = at.stage;
      has_stored = true;
    });
    if (LaneOfWarp() == 0) WaitForStoresToRead<0>();
    if (has_stored) ArriveAsWarp(s_.ring.freed[stored]);
  }
  // Whole words by a bulk store; those that have items of other ranges too, item by item.
  __device__ void StoreRange(const Range& range, const T* s_items) const {
    constexpr uint64_t kWordItems = Shape::kWordItems;
    const uint64_t first = range.begin / kWordItems * kWordItems;
    const uint64_t middle = min((range.begin + kWordItems - 1) / kWordItems * kWordItems, range.end);
    const uint64_t done = max(range.end / kWordItems * kWordItems, middle);
    if (LaneOfWarp() == 0 && done > middle) {
      BulkStore(p_.out + middle, s_items + (middle - first), static_cast<uint32_t>((done - middle) * sizeof(T)));
    }
    const uint64_t head = range.begin + LaneOfWarp(), tail = done + LaneOfWarp();
    if (head < middle) p_.out[head] = s_items[head - first];
    if (tail < range.end) p_.out[tail] = s_items[tail - first];
  }

  const Params& p_;
  Shared& s_;
  RingRanges<T, Params> ranges_;
  const LaneItems<T> lane_items_;
  const uint32_t epoch_;
  const Item start_;
  const Item neutral_;
};

template <class T, Op kOp>
__global__ void __launch_bounds__(RingSegmentScan<T, kOp>::kThreads, 1)
    RingSegmentScanKernel(const __grid_constant__ SegmentScanParams<T, T> p) {
#ifdef PREFIXD_HAS_BULK_COPY
  using Scan = RingSegmentScan<T, kOp>;
  extern __shared__ __align__(128) std::byte s_memory[];
  Scan(p, *reinterpret_cast<typename Scan::Shared*>(s_memory)).Run();
#endif
}

// Needs: RingScansSegments.
template <class T, Op kOp>
cudaError_t LaunchRingSegmentScan(SegmentScanParams<T, T>& params, LaunchContext* context) {
  using Scan = RingSegmentScan<T, kOp>;
  using Shape = typename Scan::Shape;
  static_assert(sizeof(typename Scan::Shared) <= kRingSegmentBytes);
  const cudaError_t error =
      PrepareRanges<typename Scan::Item>(kRangeItems<T>, context, &params.view, &params.num_ranges, &params.states);
  if (error != cudaSuccess) return error;
  params.num_tiles = (params.num_ranges + Shape::kTicketRanges - 1) / Shape::kTicketRanges;
  const auto num_blocks = std::min<uint32_t>(params.num_tiles, context->num_multiprocessors);
  return Launch(RingSegmentScanKernel<T, kOp>, num_blocks, Scan::kThreads, context->stream, params,
                sizeof(typename Scan::Shared));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_SEGMENT_SCAN_CUH_
