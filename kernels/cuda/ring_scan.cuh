// Scan, single pass, at the speed of a copy, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
// Each multiprocessor runs one block. Each warp has one role, so that a role waits only for what it needs:
//   load       takes tickets, and loads their stages
//   reduce     4 or 8 warps: compute the values of a stage's leaves
//   publish    one warp: joins the leaves to the tile's value, which other blocks wait for, and to each leaf's prefix
//   look back  2 to 10 warps: find what stands before the tile
//   scan       8 to 16 warps, in teams that take the stages in turn: turn a stage into its results. They begin before
//              its prefix is known, and finish after
// The reduce warps and the scan warps both reduce each stage. So a tile is published many stages before it is scanned,
// and no look-back has to wait for the tile.
// Traffic: reads n, writes n. One launch; nothing is reset before it. In place: a stage is loaded before it is written,
// and no other block writes or loads it.
// Source: Merrill and Garland 2016; see look_back.cuh. The roles and the pace are found by measurement.
#ifndef PREFIXD_KERNELS_CUDA_RING_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_RING_SCAN_CUH_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_elements.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/scan_run.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class Elements>
struct RingScanShared {
  using Shape = typename Elements::Shape;
  using Operator = typename Elements::Operator;
  using Item = typename Operator::Item;
  static constexpr int kStages = Shape::kStages;

  alignas(128) Elements elements;
  // For each leaf: the tree of all its runs but the last one; where the order is free, the tree of all its runs.
  Item trees_of_runs[kStages][Shape::kStageLeaves];
  Item last_runs[kStages][Shape::kStageLeaves];
  LeafPrefix<Item> leaf_prefixes[kStages][Shape::kStageLeaves];
  // The same in all stages of a tile; where the order is free, of a ticket.
  TilePrefix<Item> tile_prefixes[kStages][Operator::kAnyOrder ? 1 : Shape::kStageTiles];
  typename GroupFold<Operator, Shape::kLookBackWarps>::Shared fold;
  RingState<kStages> ring;
  Barrier reduced[kStages];
  Barrier prefixed[kStages];
};

template <class Elements>
class RingScan {
 public:
  using Params = typename Elements::Params;
  using Shape = typename Elements::Shape;
  using Operator = typename Elements::Operator;
  using Item = typename Operator::Item;
  using Shared = RingScanShared<Elements>;
  using Position = RingPosition<Shape::kStages>;
  // The states of a ticket, which other blocks wait for: one for each tile, or, where the order is free, one for all.
  static constexpr int kTicketStates = Operator::kAnyOrder ? 1 : Shape::kTicketTiles;

  __device__ RingScan(const Params& p, Shared& s) : p_(p), s_(s), neutral_(Operator::Load(p.neutral)) {}

  __device__ void Run() {
    const int warp = WarpOfBlock();
    // While the block gets ready, it takes its first ticket, and prefetches a ticket that some block takes.
    uint32_t ticket = 0;
    if (warp == Shape::kLoadWarp && LaneOfWarp() == 0) {
      Elements::Prefetch(p_, blockIdx.x);
      ticket = p_.states.TakeTile();
    }
    if (threadIdx.x == 0) {
      s_.ring.Init(kTeamWarps);
      for (int i = 0; i < kStages; ++i) {
        s_.reduced[i].Init(Shape::kReduceWarps * kWarpArrivals);
        s_.prefixed[i].Init(kWarpArrivals + 1);
      }
      FenceBarrierInit();
    }
    // The epoch and carry_in are read before anything is published: tile_scan.cuh says why.
    const uint32_t epoch = p_.states.Epoch();
    const Item start = s_.elements.LoadStart(p_);
    if (p_.carry_in != nullptr) __threadfence();
    __syncthreads();
    if (warp < Shape::kReduceWarps) {
      Reduce(warp);
    } else if (warp < Shape::kPublishWarp) {
      Scan(warp - Shape::kReduceWarps);
    } else if (warp == Shape::kPublishWarp) {
      Publish(epoch);
    } else if (warp < Shape::kLoadWarp) {
      LookBack(warp - Shape::kLookBackWarp, epoch, start);
    } else if (LaneOfWarp() == 0) {
      Load(ticket);
    }
  }

 private:
  static constexpr int kStages = Shape::kStages;
  static constexpr int kRunItems = Shape::kRunItems;
  static constexpr int kLeafItems = Shape::kLeafItems;
  static constexpr int kTeamWarps = Shape::kScanWarps / Shape::kTeams;
  static constexpr int kReduceThreads = Shape::kReduceWarps * kWarpThreads;  // The first of the block.
  // How many states a stage has, 1 where several stages share one; and how many stages share one.
  static constexpr int kStageStates = Operator::kAnyOrder ? 1 : Shape::kStageTiles;
  static constexpr int kStateStages = Shape::kTicketStages * kStageStates / kTicketStates;
  static_assert(kStateStages >= 1);
  using LaneRun = typename Elements::Run;
  using Element = typename LaneRun::Element;

  __device__ bool IsWhole(uint64_t begin) const { return Elements::IsWhole(p_, begin); }

  // ---- Load: one thread ----
  __device__ void Load(uint32_t first_ticket) {
    LoadThroughRing<Shape>(
        s_.ring, first_ticket, p_.num_tiles,
        [&](Position replaced) { s_.prefixed[replaced.stage].Wait(replaced.parity); },
        [&] { return p_.states.TakeTile(); },
        [&](uint32_t stage, uint32_t ticket, int sub) {
          s_.elements.LoadStage(p_, s_.ring, stage, Shape::StageBegin(ticket, sub));
        });
  }

  // ---- Reduce ----
  __device__ void Reduce(int warp) {
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      const int first_leaf = warp * Shape::kReduceRows;
      if (!IsWhole(begin)) LoadRest(at.stage, begin);
      Item values[Shape::kReduceRows];
      const auto take = [&](int row, const Element(&elements)[4]) {
        values[row] = LaneRun::Value(elements);
        if (!Operator::kAnyOrder && LaneOfWarp() == kWarpThreads - 1) {
          s_.last_runs[at.stage][first_leaf + row] = values[row];
          values[row] = neutral_;
        }
      };
      s_.elements.template VisitRuns<Shape::kReduceRows>(p_, at.stage, begin, first_leaf, take);
      const Item tree = WarpTreeOfRows<Operator>(values);
      if (LaneOfWarp() < Shape::kReduceRows) s_.trees_of_runs[at.stage][first_leaf + LaneOfWarp()] = tree;
      ArriveAsWarp(s_.reduced[at.stage]);
    });
  }

  // Loads the items that LoadStage did not bring. Slots past the end may have anything. Every warp may read all that
  // the others load, so they wait for each other.
  __device__ void LoadRest(uint32_t stage, uint64_t begin) {
    const BulkItems bulk = Elements::BulkPart(p_, begin);
    const uint32_t end = NumStageItems<Shape>(begin, p_.num_items);
    for (uint32_t i = threadIdx.x; i < bulk.first; i += kReduceThreads) s_.elements.LoadElement(p_, stage, begin, i);
    for (uint32_t i = bulk.end + threadIdx.x; i < end; i += kReduceThreads) {
      s_.elements.LoadElement(p_, stage, begin, i);
    }
    SyncTeam<2, kReduceThreads>();
  }

  // ---- Publish ----
  __device__ void Publish(uint32_t epoch) {
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      Item before_tile = neutral_;  // Where the order is free, a ticket has one state: its tiles before this one.
      for (int t = 0; t < Shape::kTicketTiles; ++t) {
        // Lane l has leaf l, which may be in a later stage of the tile.
        Position mine = at;
#pragma unroll
        for (int stage = 1; stage < Shape::kTileStages; ++stage) {
          if (LaneOfWarp() >= stage * Shape::kStageLeaves) mine.Next();
        }
        const int leaf = t % Shape::kStageTiles * kJoinSlots + LaneOfWarp() % Shape::kStageLeaves;
        s_.reduced[mine.stage].Wait(mine.parity);
        __syncwarp();
        Item leaf_value = s_.trees_of_runs[mine.stage][leaf];
        if constexpr (!Operator::kAnyOrder) leaf_value = Operator::Combine(leaf_value, s_.last_runs[mine.stage][leaf]);
        WarpJoined<Item> leaves = WarpJoins<Operator>(leaf_value, neutral_);
        if constexpr (Operator::kAnyOrder) {
          leaves = {Operator::Combine(before_tile, leaves.before), Operator::Combine(before_tile, leaves.value)};
          before_tile = ShuffleFrom(leaves.value, kWarpThreads - 1);
          s_.leaf_prefixes[mine.stage][leaf] = {leaves.before, leaves.before};
        } else {
          s_.leaf_prefixes[mine.stage][leaf] = {leaves.before, ShuffleFrom(leaves.value, LaneOfWarp() - 1)};
        }
        if (LaneOfWarp() == kWarpThreads - 1 && (!Operator::kAnyOrder || t == Shape::kTicketTiles - 1)) {
          p_.states.Publish(ticket * kTicketStates + t % kTicketStates, epoch, leaves.value);
        }
        __syncwarp();
        if (t % Shape::kStageTiles != Shape::kStageTiles - 1) continue;
        for (int stage = 0; stage < Shape::kTileStages; ++stage, at.Next()) {
          ArriveAsWarp(s_.prefixed[at.stage]);
        }
      }
    });
  }

  // ---- Look back ----
  __device__ void LookBack(int warp, uint32_t epoch, Item start) {
    GroupFold<Operator, Shape::kLookBackWarps> fold(p_.states, epoch, start, neutral_, warp, s_.fold);
    const bool is_leader = warp == 0 && LaneOfWarp() == 0;
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      const uint32_t state = ticket * kTicketStates;
      const auto slot = static_cast<int>(state % kJoinSlots);
      fold.WaitFor(state / kJoinSlots, slot + kTicketStates - 1,
                   [] { SyncTeam<1, Shape::kLookBackWarps * kWarpThreads>(); });
      for (int stage = 0; stage < Shape::kTicketStages; ++stage, at.Next()) {
        if (!is_leader) continue;
        s_.ring.loaded[at.stage].Wait(at.parity);  // Before that, the prefixes there may belong to another ticket.
        for (int t = 0; t < kStageStates; ++t) {
          s_.tile_prefixes[at.stage][t] = fold.Prefix(slot + stage / kStateStages * kStageStates + t);
        }
        s_.prefixed[at.stage].Arrive();
      }
    });
    // The block reads no more states. Its publisher may still write some, but no block waits for those.
    if (is_leader) p_.states.Leave();
  }

  // ---- Scan ----
  __device__ void Scan(int warp) {
    const int first_leaf = warp % kTeamWarps * Shape::kScanRows;
    const auto scan = [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      if (!IsWhole(begin) || (p_.carry_out != nullptr && begin + Shape::kStageItems == p_.num_items)) {
        ScanLast(at, sub, begin, first_leaf);
      } else if (p_.exclusive) {
        ScanRows<true>(at, sub, begin, first_leaf);
      } else {
        ScanRows<false>(at, sub, begin, first_leaf);
      }
      ArriveAsWarp(s_.ring.freed[at.stage]);
    };
    ForEachStage<Shape, Shape::kTeams>(s_.ring, scan, warp / kTeamWarps);
  }

  template <bool kExclusive>
  __device__ void ScanRows(Position at, int sub, uint64_t begin, int first_leaf) {
    LaneRun runs[Shape::kScanRows];
    s_.elements.template VisitRuns<Shape::kScanRows>(
        p_, at.stage, begin, first_leaf,
        [&](int row, const Element(&elements)[4]) { runs[row].Join(elements, neutral_); });
    s_.prefixed[at.stage].Wait(at.parity);
    const TilePrefix<Item> prefix = PrefixOf(at.stage, first_leaf);
    s_.elements.StoreLeaves(p_, begin + first_leaf * kLeafItems, runs, [&](int row) {
      FinishRun<kExclusive>(at.stage, sub, first_leaf + row, prefix, runs[row]);
    });
  }

  // Scans stages that are not whole, and the stage that ends with the carry.
  __device__ void ScanLast(Position at, int sub, uint64_t begin, int first_leaf) {
    s_.reduced[at.stage].Wait(at.parity);
    s_.prefixed[at.stage].Wait(at.parity);
    const TilePrefix<Item> prefix = PrefixOf(at.stage, first_leaf);
#pragma unroll 1
    for (int leaf = first_leaf; leaf < first_leaf + Shape::kScanRows; ++leaf) {
      LaneRun run;
      s_.elements.template VisitRuns<1>(p_, at.stage, begin, leaf,
                                        [&](int, const Element(&elements)[4]) { run.Join(elements, neutral_); });
      const uint64_t first_item = begin + leaf * kLeafItems + LaneOfWarp() * kRunItems;
      FinishRun<false>(at.stage, sub, leaf, prefix, run);
      if (p_.carry_out != nullptr && first_item < p_.num_items && p_.num_items <= first_item + kRunItems) {
        s_.elements.KeepCarry(p_, first_item, run);
      }
      __syncwarp();
      if (p_.exclusive) run.MakeExclusive(s_.leaf_prefixes[at.stage][leaf], IsFirstOfState(sub, leaf), prefix);
      s_.elements.StoreItems(p_, first_item, run);
    }
  }

  template <bool kExclusive>
  __device__ void FinishRun(uint32_t stage, int sub, int leaf, const TilePrefix<Item>& prefix, LaneRun& run) const {
    const LeafPrefix<Item> leaf_prefix = s_.leaf_prefixes[stage][leaf];
    run.Finish(leaf_prefix, prefix);
    if constexpr (kExclusive) run.MakeExclusive(leaf_prefix, IsFirstOfState(sub, leaf), prefix);
  }

  // What stands before the tile of a warp's leaves.
  __device__ TilePrefix<Item> PrefixOf(uint32_t stage, int first_leaf) const {
    static_assert(kStageStates == 1 || kJoinSlots % Shape::kScanRows == 0);
    return s_.tile_prefixes[stage][kStageStates == 1 ? 0 : first_leaf / kJoinSlots];
  }
  // Whether the leaf is the first of its state, so that it follows right after what the look-back found.
  __device__ bool IsFirstOfState(int sub, int leaf) const {
    return kStageStates == 1 ? leaf == 0 && sub % kStateStages == 0 : leaf % kJoinSlots == 0;
  }

  const Params& p_;
  Shared& s_;
  const Item neutral_;
};

// p.num_tiles: the number of tickets. Threads and shared memory: those of the shape and of RingScanShared.
template <class Elements>
__global__ void __launch_bounds__(Elements::Shape::kThreads, 1)
    RingScanKernel(const __grid_constant__ typename Elements::Params p) {
#ifdef PREFIXD_HAS_BULK_COPY
  extern __shared__ __align__(128) std::byte s_memory[];
  RingScan<Elements>(p, *reinterpret_cast<RingScanShared<Elements>*>(s_memory)).Run();
#endif
}

// From here on the ring is faster than tiles in registers by ticket.
inline constexpr uint64_t kRingScanMinBytes = uint64_t{256} << 10;

template <class Elements>
bool RingScanServes(const typename Elements::Params& params, const LaunchContext& context) {
  using Result = std::remove_pointer_t<decltype(params.out)>;
  using Element = std::remove_const_t<std::remove_pointer_t<decltype(params.in)>>;
  return Elements::Serves(params) &&
         params.num_items * std::max(sizeof(Element), sizeof(Result)) >= kRingScanMinBytes &&
         context.bulk_shared_bytes >= sizeof(RingScanShared<Elements>);
}

template <class Elements>
cudaError_t LaunchRingScan(typename Elements::Params& params, LaunchContext* context) {
  using Shape = typename Elements::Shape;
  using RingScan = RingScan<Elements>;
  static_assert(sizeof(typename RingScan::Shared) <= kMaxRingBytes);
  const cudaError_t error =
      PrepareTickets<typename RingScan::Item>(Shape::kTicketItems, RingScan::kTicketStates, context, &params);
  if (error != cudaSuccess) return error;
  const auto num_blocks = std::min<uint32_t>(params.num_tiles, context->num_multiprocessors);
  return Launch(RingScanKernel<Elements>, num_blocks, Shape::kThreads, context->stream, params,
                sizeof(typename RingScan::Shared));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_SCAN_CUH_
