// Scan, single pass, at the speed of a copy, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
// One block a multiprocessor, one role a warp, so that nothing waits for anything but what it needs:
//   load       takes tickets, of two stages each, and loads them
//   reduce     8 warps: a stage's leaves to their values
//   publish    the values of the leaves to that of the tile, for which others wait, and what stands before each leaf
//   look back  8 warps (6 for 8-byte items): what stands before the tile
//   scan       8 warps: a stage in place, beginning before, and finishing when what stands before is known
//   store      stores it
// Reducing is done twice, by reduce and by scan warps: it is what lets a tile be published many stages before it is
// scanned, so that the look-back of nobody waits.
// Traffic: reads n, writes n. One launch; nothing is reset before it. Last stages that are not whole are moved without
// bulk copies. In place: a stage is read before it is written, and no other block touches it.
// Source: Merrill and Garland, NVR-2016-002; see look_back.cuh. The roles and the pace are found by measurement.
#ifndef PREFIXD_KERNELS_CUDA_RING_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_RING_SCAN_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T>
struct RingScanShape {
  static constexpr int kStages = 13;
  static constexpr int kStageBytes = 16 * 1024;
  static constexpr int kStageItems = kStageBytes / sizeof(T);
  static constexpr int kStageLeaves = kStageItems / kLeafItems;
  static constexpr int kTicketStages = 2;
  static constexpr int kTicketItems = kTicketStages * kStageItems;
  static constexpr int kTicketTiles = kTicketItems / kTileItems;
  static constexpr int kTileStages = kTicketStages / kTicketTiles;
  static_assert(kTileStages * kTicketTiles == kTicketStages && kJoinSlots % kTicketTiles == 0);

  static constexpr int kReduceWarps = 8;
  static constexpr int kScanWarps = 8;
  static constexpr int kReduceRows = kStageLeaves / kReduceWarps;
  static constexpr int kScanRows = kStageLeaves / kScanWarps;
  // Warps by role.
  static constexpr int kPublishWarp = kReduceWarps + kScanWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  // About as many as groups are published while the other blocks take a ticket each.
  static constexpr int kLookBackWarps = sizeof(T) == 8 ? 6 : 8;
  static constexpr int kLoadWarp = kLookBackWarp + kLookBackWarps;
  static constexpr int kStoreWarp = kLoadWarp + 1;
  static constexpr int kThreads = (kStoreWarp + 1) * kWarpThreads;

  static constexpr int kPacedLoads = 3;
};

template <class T, class Operator>
struct RingScanShared {
  using Shape = RingScanShape<T>;
  using Item = typename Operator::Item;
  static constexpr int kStages = Shape::kStages;

  alignas(128) T items[kStages][Shape::kStageItems];
  Item trees_of_runs[kStages][Shape::kStageLeaves];  // Of all but the last run of each leaf.
  Item last_runs[kStages][Shape::kStageLeaves];
  LeafPrefix<Item> leaf_prefixes[kStages][Shape::kStageLeaves];
  TilePrefix<Item> tile_prefixes[kStages];  // In every stage of the tile.
  typename GroupFold<Operator, Shape::kLookBackWarps>::Shared fold;
  RingState<kStages> ring;
  Barrier reduced[kStages];
  Barrier prefixed[kStages];
};

template <class T, Op kOp>
class RingScan {
 public:
  using Shape = RingScanShape<T>;
  using Operator = Operator<kOp, T>;
  using Item = typename Operator::Item;

  using Shared = RingScanShared<T, Operator>;
  using Position = RingPosition<Shape::kStages>;

  __device__ RingScan(const ScanParams<T, T>& p, Shared& s) : p_(p), s_(s), neutral_(Operator::Load(p.neutral)) {}

  __device__ void Run() {
    const int warp = WarpOfBlock();
    // The first ticket is under way while the block gets ready.
    uint32_t ticket = 0;
    if (warp == Shape::kLoadWarp && LaneOfWarp() == 0) ticket = p_.states.TakeTile();
    if (threadIdx.x == 0) {
      s_.ring.Init(Shape::kScanWarps);
      for (int i = 0; i < kStages; ++i) {
        s_.reduced[i].Init(Shape::kReduceWarps * kWarpArrivals);
        s_.prefixed[i].Init(kWarpArrivals + 1);
      }
      FenceBarrierInit();
    }
    // Both as in tile_scan.cuh: before anything is published.
    const uint32_t epoch = p_.states.Epoch();
    Item start = Operator::Load(p_.init);
    if (p_.carry_in != nullptr) {
      start = Operator::Load(*p_.carry_in);
      __threadfence();
    }
    __syncthreads();
    if (warp < Shape::kReduceWarps) {
      Reduce(warp);
    } else if (warp < Shape::kPublishWarp) {
      Scan(warp - Shape::kReduceWarps);
    } else if (warp == Shape::kPublishWarp) {
      Publish(epoch);
    } else if (warp < Shape::kLoadWarp) {
      LookBack(warp - Shape::kLookBackWarp, epoch, start);
    } else if (warp == Shape::kLoadWarp) {
      if (LaneOfWarp() == 0) Load(ticket);
    } else {
      Store();
    }
  }

 private:
  static constexpr int kStages = Shape::kStages;

  // Items of the stage that exist. sub: the stage's number in its ticket.
  __device__ uint64_t StageBegin(uint32_t ticket, int sub) const {
    return uint64_t{ticket} * Shape::kTicketItems + sub * Shape::kStageItems;
  }
  __device__ bool IsWhole(uint64_t begin) const { return begin + Shape::kStageItems <= p_.num_items; }

  // ---- Load: one thread. Store ----
  __device__ void Load(uint32_t first_ticket) {
    LoadThroughRing<Shape>(
        s_.ring, first_ticket, p_.num_tiles, [&] { return p_.states.TakeTile(); },
        [&](uint32_t stage, uint32_t ticket, int sub) {
          const uint64_t begin = StageBegin(ticket, sub);
          if (!IsWhole(begin)) return s_.ring.loaded[stage].Arrive();
          s_.ring.loaded[stage].ArriveExpecting(Shape::kStageBytes);
          BulkLoad(s_.items[stage], p_.in + begin, Shape::kStageBytes, &s_.ring.loaded[stage]);
        });
  }

  __device__ void Store() {
    StoreThroughRing<Shape>(s_.ring, [&](uint32_t stage, uint32_t ticket, int sub) {
      const uint64_t begin = StageBegin(ticket, sub);
      if (LaneOfWarp() == 0 && IsWhole(begin)) BulkStore(p_.out + begin, s_.items[stage], Shape::kStageBytes);
    });
  }

  // ---- Reduce ----
  __device__ void Reduce(int warp) {
    Position at;
    for (int sub = 0;; at.Next(), sub = (sub + 1) % Shape::kTicketStages) {
      s_.ring.loaded[at.stage].Wait(at.parity);
      const uint32_t ticket = s_.ring.tickets[at.stage];
      if (ticket == s_.ring.kEnd) break;
      const uint64_t begin = StageBegin(ticket, sub);
      const int first_leaf = warp * Shape::kReduceRows;
      if (!IsWhole(begin)) LoadPartial(at.stage, begin, first_leaf);
      Item values[Shape::kReduceRows];
#pragma unroll
      for (int row = 0; row < Shape::kReduceRows; ++row) {
        Item run[kRunItems];
        LoadRun(at.stage, first_leaf + row, run);
#pragma unroll
        for (int i = 1; i < kRunItems; ++i) run[0] = Operator::Combine(run[0], run[i]);
        values[row] = run[0];
        if (LaneOfWarp() == kWarpThreads - 1) {
          s_.last_runs[at.stage][first_leaf + row] = run[0];
          values[row] = neutral_;
        }
      }
      const Item tree = WarpTreeOfRows<Operator>(values);
      if (LaneOfWarp() < Shape::kReduceRows) s_.trees_of_runs[at.stage][first_leaf + LaneOfWarp()] = tree;
      ArriveAsWarp(s_.reduced[at.stage]);
    }
  }

  // What exists of the warp's leaves of the stage; what does not may be anything.
  __device__ void LoadPartial(uint32_t stage, uint64_t begin, int first_leaf) {
    for (int i = LaneOfWarp(); i < Shape::kReduceRows * kLeafItems; i += kWarpThreads) {
      const int item = first_leaf * kLeafItems + i;
      s_.items[stage][item] = begin + item < p_.num_items ? p_.in[begin + item] : T{};
    }
    __syncwarp();
  }

  // ---- Publish ----
  __device__ void Publish(uint32_t epoch) {
    Position at;
    for (;;) {
      s_.ring.loaded[at.stage].Wait(at.parity);
      const uint32_t ticket = s_.ring.tickets[at.stage];
      if (ticket == s_.ring.kEnd) break;
      for (int t = 0; t < Shape::kTicketTiles; ++t) {
        // Lane l has leaf l, which may be in the tile's second stage.
        Position mine = at;
        if (Shape::kTileStages == 2 && LaneOfWarp() >= Shape::kStageLeaves) mine.Next();
        const int leaf = LaneOfWarp() % Shape::kStageLeaves;
        s_.reduced[mine.stage].Wait(mine.parity);
        __syncwarp();
        const Item leaf_value = Operator::Combine(s_.trees_of_runs[mine.stage][leaf], s_.last_runs[mine.stage][leaf]);
        const WarpJoined<Item> leaves = WarpJoins<Operator>(leaf_value, neutral_);
        if (LaneOfWarp() == kWarpThreads - 1) {
          p_.states.Publish(ticket * Shape::kTicketTiles + t, epoch, leaves.value);
        }
        const Item up_to = ShuffleFrom(leaves.value, LaneOfWarp() - 1);
        s_.leaf_prefixes[mine.stage][leaf] = {leaves.before, up_to};
        __syncwarp();
        for (int stage = 0; stage < Shape::kTileStages; ++stage, at.Next()) {
          ArriveAsWarp(s_.prefixed[at.stage]);
        }
      }
    }
  }

  // ---- Look back ----
  __device__ void LookBack(int warp, uint32_t epoch, Item start) {
    GroupFold<Operator, Shape::kLookBackWarps> fold(p_.states, epoch, start, neutral_, warp, s_.fold);
    Position at;
    for (;;) {
      s_.ring.loaded[at.stage].Wait(at.parity);
      const uint32_t ticket = s_.ring.tickets[at.stage];
      if (ticket == s_.ring.kEnd) break;
      const uint32_t tile = ticket * Shape::kTicketTiles;
      const auto slot = static_cast<int>(tile % kJoinSlots);
      fold.WaitFor(tile / kJoinSlots, slot + Shape::kTicketTiles - 1,
                   [] { SyncTeam<1, Shape::kLookBackWarps * kWarpThreads>(); });
      for (int t = 0; t < Shape::kTicketTiles; ++t) {
        for (int stage = 0; stage < Shape::kTileStages; ++stage, at.Next()) {
          if (warp != 0 || LaneOfWarp() != 0) continue;
          s_.tile_prefixes[at.stage] = fold.Prefix(slot + t);
          s_.prefixed[at.stage].Arrive();
        }
      }
    }
    // The block needs no more of the states: what its publisher may still publish, nobody waits for.
    if (warp == 0 && LaneOfWarp() == 0) p_.states.Leave();
  }

  // ---- Scan ----
  __device__ void Scan(int warp) {
    Position at;
    for (int sub = 0;; at.Next(), sub = (sub + 1) % Shape::kTicketStages) {
      s_.ring.loaded[at.stage].Wait(at.parity);
      const uint32_t ticket = s_.ring.tickets[at.stage];
      if (ticket == s_.ring.kEnd) break;
      const uint64_t begin = StageBegin(ticket, sub);
      const bool whole = IsWhole(begin);
      if (!whole) s_.reduced[at.stage].Wait(at.parity);
      const int first_leaf = warp * Shape::kScanRows;
      Item runs[Shape::kScanRows][kRunItems];
      Item before_run[Shape::kScanRows];
#pragma unroll
      for (int row = 0; row < Shape::kScanRows; ++row) {
        LoadRun(at.stage, first_leaf + row, runs[row]);
        before_run[row] = JoinRun<Operator>(runs[row], neutral_);
      }
      s_.prefixed[at.stage].Wait(at.parity);
      const TilePrefix<Item> prefix = s_.tile_prefixes[at.stage];
#pragma unroll
      for (int row = 0; row < Shape::kScanRows; ++row) {
        const int leaf = first_leaf + row;
        const LeafPrefix<Item> leaf_prefix = s_.leaf_prefixes[at.stage][leaf];
        JoinArray<Operator>(runs[row], before_run[row], leaf_prefix.before, prefix);
        const int first_item = leaf * kLeafItems + LaneOfWarp() * kRunItems;
        if (begin + Shape::kTicketItems >= p_.num_items) KeepCarry<Operator>(p_, begin + first_item, runs[row]);
        if (p_.exclusive) {
          const bool is_first_leaf = leaf == 0 && sub % Shape::kTileStages == 0;
          MoveByOne<Operator>(runs[row], is_first_leaf, leaf_prefix.up_to, prefix);
        }
        if (whole) {
          StoreRun(at.stage, leaf, runs[row]);
        } else {
#pragma unroll
          for (int i = 0; i < kRunItems; ++i) {
            const uint64_t item = begin + first_item + i;
            if (item < p_.num_items) p_.out[item] = Operator::Store(runs[row][i]);
          }
        }
      }
      FenceBeforeBulkStore();
      ArriveAsWarp(s_.ring.ready[at.stage]);
    }
  }

  // ---- A run of a leaf, in shared memory ----
  __device__ void LoadRun(uint32_t stage, int leaf, Item (&run)[kRunItems]) const {
    T elements[kRunItems];
    RowAccess<T>::Load(&s_.items[stage][leaf * kLeafItems], elements);
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) run[i] = Operator::Load(elements[i]);
  }

  __device__ void StoreRun(uint32_t stage, int leaf, const Item (&run)[kRunItems]) {
    T elements[kRunItems];
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) elements[i] = Operator::Store(run[i]);
    RowAccess<T>::Store(&s_.items[stage][leaf * kLeafItems], elements);
  }

  const ScanParams<T, T>& p_;
  Shared& s_;
  const Item neutral_;
};

// p.num_tiles: of tickets. Threads and shared memory: RingScanShape<T>.
template <class T, Op kOp>
__global__ void __launch_bounds__(RingScanShape<T>::kThreads, 1)
    RingScanKernel(const __grid_constant__ ScanParams<T, T> p) {
#ifdef PREFIXD_HAS_BULK_COPY
  extern __shared__ __align__(128) std::byte s_memory[];
  RingScan<T, kOp>(p, *reinterpret_cast<typename RingScan<T, kOp>::Shared*>(s_memory)).Run();
#endif
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_SCAN_CUH_
