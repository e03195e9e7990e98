// Compact, single pass, at the speed of a copy, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
// As in ring_scan.cuh, a tile is published long before it is moved, by warps that do only that:
//   load       takes tickets, and loads their elements and mask
//   select     8 warps: which elements of the stage are kept, as bits, and how many
//   publish    the tile's count, which other blocks wait for
//   look back  where the tile's kept elements go
//   gather     8 warps: move the kept elements of the stage together, in place, to where a bulk store can begin
//   store      stores them
// A tile is a ticket: two stages. A row is 128 items, 4 a lane.
// Traffic: reads n (and the mask), writes what is kept. Values only.
// Source: Merrill and Garland, NVR-2016-002; see look_back.cuh.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T, Selector kSelector>
struct RingCompactShape : RingShape<T, kSelector == Selector::kByteMask && sizeof(T) == 4 ? 12 : 13> {
  using Base = RingShape<T, kSelector == Selector::kByteMask && sizeof(T) == 4 ? 12 : 13>;
  static constexpr bool kHasMask = kSelector == Selector::kByteMask;
  // A mask is needed less long than its elements, until they are selected: fewer masks than stages.
  static constexpr int kMasks = 6;
  static constexpr int kRowItems = 4 * kWarpThreads;
  static constexpr int kRows = Base::kStageItems / kRowItems;
  // Where a bulk store can begin, in items.
  static constexpr int kBulkItems = kBulkAlignment / sizeof(T);

  static constexpr int kSelectWarps = 8;
  static constexpr int kGatherWarps = 8;
  static constexpr int kWarpRows = kRows / kSelectWarps;
  static_assert(kSelectWarps == kGatherWarps && kWarpRows * kSelectWarps == kRows);
  // Warps by role.
  static constexpr int kPublishWarp = kSelectWarps + kGatherWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  static constexpr int kLookBackWarps = 8;
  static constexpr int kLoadWarp = kLookBackWarp + kLookBackWarps;
  static constexpr int kStoreWarp = kLoadWarp + 1;
  static constexpr int kThreads = (kStoreWarp + 1) * kWarpThreads;

  static constexpr int kPacedLoads = 3;
};

template <class T, Selector kSelector>
struct RingCompactShared {
  using Shape = RingCompactShape<T, kSelector>;
  static constexpr int kStages = Shape::kStages;

  // Room for what is gathered to begin up to kBulkItems later than it was.
  alignas(128) T items[kStages][Shape::kStageItems + Shape::kBulkItems];
  alignas(128) uint8_t masks[Shape::kMasks][Shape::kHasMask ? Shape::kStageItems : 1];
  uint4 kept[kStages][Shape::kRows];  // Word i, bit l: item i of lane l.
  uint32_t warp_counts[kStages][Shape::kSelectWarps];
  uint32_t counts[kStages];   // Kept elements of the stage,
  uint32_t offsets[kStages];  // of the tile's stages before it,
  uint64_t slots[kStages];    // and of all tiles before.
  typename GroupFold<CountSum, Shape::kLookBackWarps, uint64_t>::Shared fold;
  RingState<kStages> ring;
  Barrier selected[kStages];
  Barrier placed[kStages];
  Barrier ready[kStages];  // To be stored.
};

template <class T, Selector kSelector>
class RingCompact {
 public:
  using Shape = RingCompactShape<T, kSelector>;
  using Shared = RingCompactShared<T, kSelector>;
  using Position = RingPosition<Shape::kStages>;

  __device__ RingCompact(const CompactParams<T>& p, Shared& s) : p_(p), s_(s) {}

  __device__ void Run() {
    const int warp = WarpOfBlock();
    // The first ticket is under way while the block gets ready.
    uint32_t ticket = 0;
    if (warp == Shape::kLoadWarp && LaneOfWarp() == 0) ticket = p_.states.TakeTile();
    if (threadIdx.x == 0) {
      s_.ring.Init(1);
      for (int i = 0; i < kStages; ++i) {
        s_.ready[i].Init(Shape::kGatherWarps * kWarpArrivals);
        s_.selected[i].Init(Shape::kSelectWarps * kWarpArrivals);
        s_.placed[i].Init(2);
      }
      FenceBarrierInit();
    }
    const uint32_t epoch = p_.states.Epoch();
    __syncthreads();
    if (warp < Shape::kSelectWarps) {
      Select(warp);
    } else if (warp < Shape::kPublishWarp) {
      Gather(warp - Shape::kSelectWarps);
    } else if (warp == Shape::kPublishWarp) {
      if (LaneOfWarp() == 0) Publish(epoch);
    } else if (warp < Shape::kLoadWarp) {
      LookBack(warp - Shape::kLookBackWarp, epoch);
    } else if (warp == Shape::kLoadWarp) {
      if (LaneOfWarp() == 0) Load(ticket);
    } else {
      Store();
    }
  }

 private:
  static constexpr int kStages = Shape::kStages;

  __device__ bool IsWhole(uint64_t begin) const { return Shape::IsWhole(begin, p_.num_items); }

  __device__ uint32_t CountOf(uint32_t stage) const {
    uint32_t count = 0;
#pragma unroll
    for (int warp = 0; warp < Shape::kSelectWarps; ++warp) count += s_.warp_counts[stage][warp];
    return count;
  }

  // Where the first kept element of the stage goes.
  __device__ uint64_t SlotOf(uint32_t stage) const { return s_.slots[stage] + s_.offsets[stage]; }
  // How far the first kept element lies behind a place where a bulk store can begin, in elements.
  __device__ uint32_t ShiftOf(uint32_t stage) const {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p_.values + SlotOf(stage)) % kBulkAlignment / sizeof(T));
  }

  // ---- Load: one thread. Store ----
  __device__ void Load(uint32_t first_ticket) {
    RingPosition<Shape::kMasks> mask;
    Position last_selected;
    int num_loads = 0;
    LoadThroughRing<Shape>(
        s_.ring, first_ticket, p_.num_tiles, [&] { return p_.states.TakeTile(); },
        [&](uint32_t stage, uint32_t ticket, int sub) {
          const uint64_t begin = Shape::StageBegin(ticket, sub);
          Barrier& loaded = s_.ring.loaded[stage];
          if (Shape::kHasMask && num_loads++ >= Shape::kMasks) {
            s_.selected[last_selected.stage].Wait(last_selected.parity);
            last_selected.Next();
          }
          if (!IsWhole(begin)) return loaded.Arrive();
          loaded.ArriveExpecting(Shape::kStageBytes + (Shape::kHasMask ? Shape::kStageItems : 0));
          BulkLoad(s_.items[stage], p_.in + begin, Shape::kStageBytes, &loaded);
          if constexpr (Shape::kHasMask) {
            BulkLoad(s_.masks[mask.stage], p_.mask + begin, Shape::kStageItems, &loaded);
            mask.Next();
          }
        });
  }

  __device__ void Store() {
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint32_t stage = at.stage;
      s_.ready[stage].Wait(at.parity);
      const uint32_t shift = ShiftOf(stage);
      const uint32_t count = s_.counts[stage];
      const T* gathered = s_.items[stage] + shift;
      T* out = p_.values + SlotOf(stage);
      // What a bulk store cannot move is at both ends.
      const uint32_t head = min((Shape::kBulkItems - shift) % Shape::kBulkItems, count);
      const uint32_t middle = (count - head) / Shape::kBulkItems * Shape::kBulkItems;
      if (LaneOfWarp() == 0 && middle > 0) BulkStore(out + head, gathered + head, middle * sizeof(T));
      if (const uint32_t i = LaneOfWarp(); i < count - middle) {
        const uint32_t rank = i < head ? i : middle + i;
        out[rank] = gathered[rank];
      }
      if (LaneOfWarp() == 0 && ticket == p_.num_tiles - 1 && sub == Shape::kTicketStages - 1) {
        *p_.count = SlotOf(stage) + count;
        *p_.h_num_kept = SlotOf(stage) + count;
      }
      // The stage may be loaded again, and the shared memory may end with the block, when the stores have read it.
      CommitStores();
      WaitForStoresToRead();
      ArriveAsWarp(s_.ring.freed[stage]);
    });
  }

  // ---- Select ----
  __device__ void Select(int warp) {
    const uint32_t flip = p_.invert ? kAllLanes : 0;
    RingPosition<Shape::kMasks> mask;
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      const bool whole = IsWhole(begin);
      uint32_t count = 0;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        const int first_item = FirstItem(warp, row);
        if (!whole) LoadPartial(at.stage, mask.stage, begin, first_item);
        bool selected[4];
        SelectItems(at.stage, mask.stage, first_item, selected);
        uint32_t kept[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          kept[i] = __ballot_sync(kAllLanes, selected[i]) ^ flip;
          if (!whole) kept[i] &= __ballot_sync(kAllLanes, begin + first_item + i < p_.num_items);
          count += __popc(kept[i]);
        }
        if (LaneOfWarp() == 0) s_.kept[at.stage][warp * Shape::kWarpRows + row] = {kept[0], kept[1], kept[2], kept[3]};
      }
      if (LaneOfWarp() == 0) s_.warp_counts[at.stage][warp] = count;
      ArriveAsWarp(s_.selected[at.stage]);
      mask.Next();
    });
  }

  // The lane's first item of a row of the warp's.
  __device__ static int FirstItem(int warp, int row) {
    return (warp * Shape::kWarpRows + row) * Shape::kRowItems + 4 * LaneOfWarp();
  }

  // What exists of the lane's items; what does not may be anything.
  __device__ void LoadPartial(uint32_t stage, uint32_t mask, uint64_t begin, int first_item) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint64_t item = begin + first_item + i;
      if (item >= p_.num_items) continue;
      s_.items[stage][first_item + i] = p_.in[item];
      if constexpr (Shape::kHasMask) s_.masks[mask][first_item + i] = p_.mask[item];
    }
  }

  __device__ void SelectItems(uint32_t stage, uint32_t mask, int first_item, bool (&selected)[4]) const {
    if constexpr (Shape::kHasMask) {
      const uint32_t bytes = *reinterpret_cast<const uint32_t*>(&s_.masks[mask][first_item]);
#pragma unroll
      for (int i = 0; i < 4; ++i) selected[i] = (bytes >> 8 * i & 0xff) != 0;
    } else {
      T items[4];
      RowAccess<T>::Load(&s_.items[stage][first_item - 4 * LaneOfWarp()], items);
#pragma unroll
      for (int i = 0; i < 4; ++i) selected[i] = p_.kept.Contains(items[i]);
    }
  }

  // ---- Publish: one thread ----
  __device__ void Publish(uint32_t epoch) {
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      uint32_t count = 0;
      for (int stage = 0; stage < Shape::kTicketStages; ++stage, at.Next()) {
        s_.selected[at.stage].Wait(at.parity);
        s_.offsets[at.stage] = count;
        s_.counts[at.stage] = CountOf(at.stage);
        count += s_.counts[at.stage];
        s_.placed[at.stage].Arrive();
      }
      p_.states.Publish(ticket, epoch, count);
    });
  }

  // ---- Look back ----
  __device__ void LookBack(int warp, uint32_t epoch) {
    GroupFold<CountSum, Shape::kLookBackWarps, uint64_t> fold(p_.states, epoch, 0, 0, warp, s_.fold);
    const bool is_leader = warp == 0 && LaneOfWarp() == 0;
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      const auto tile = static_cast<int>(ticket % kJoinSlots);
      fold.WaitFor(ticket / kJoinSlots, tile, [] { SyncTeam<1, Shape::kLookBackWarps * kWarpThreads>(); });
      const TilePrefix<uint32_t, uint64_t> prefix = fold.Prefix(tile);
      for (int stage = 0; stage < Shape::kTicketStages; ++stage, at.Next()) {
        if (!is_leader) continue;
        s_.slots[at.stage] = prefix.array + prefix.group;
        s_.placed[at.stage].Arrive();
      }
    });
    // The block needs no more of the states: what its publisher may still publish, nobody waits for.
    if (is_leader) p_.states.Leave();
  }

  // ---- Gather ----
  __device__ void Gather(int warp) {
    const uint32_t lanes_before = (1u << LaneOfWarp()) - 1;
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t, int) {
      s_.selected[at.stage].Wait(at.parity);
      T items[Shape::kWarpRows][4];
      uint32_t mine[Shape::kWarpRows];  // Bit i: item i is kept.
      uint32_t rank[Shape::kWarpRows];  // Of the first of them, in the stage.
      uint32_t next_rank = 0;
#pragma unroll
      for (int w = 0; w < Shape::kSelectWarps; ++w) next_rank += w < warp ? s_.warp_counts[at.stage][w] : 0;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        RowAccess<T>::Load(&s_.items[at.stage][FirstItem(warp, row) - 4 * LaneOfWarp()], items[row]);
        const uint4 kept = s_.kept[at.stage][warp * Shape::kWarpRows + row];
        mine[row] = (kept.x >> LaneOfWarp() & 1) | (kept.y >> LaneOfWarp() & 1) << 1 |
                    (kept.z >> LaneOfWarp() & 1) << 2 | (kept.w >> LaneOfWarp() & 1) << 3;
        rank[row] = next_rank + __popc(kept.x & lanes_before) + __popc(kept.y & lanes_before) +
                    __popc(kept.z & lanes_before) + __popc(kept.w & lanes_before);
        next_rank += __popc(kept.x) + __popc(kept.y) + __popc(kept.z) + __popc(kept.w);
      }
      s_.placed[at.stage].Wait(at.parity);
      T* gathered = s_.items[at.stage] + ShiftOf(at.stage);
      SyncTeam<2, Shape::kGatherWarps * kWarpThreads>();  // All have read what all now overwrite.
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        T* next = gathered + rank[row];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((mine[row] >> i & 1) != 0) *next++ = items[row][i];
        }
      }
      FenceBeforeBulkStore();
      ArriveAsWarp(s_.ready[at.stage]);
    });
  }

  const CompactParams<T>& p_;
  Shared& s_;
};

// p.num_tiles: of tickets. Threads and shared memory: RingCompactShape, RingCompactShared.
template <class T, Selector kSelector>
__global__ void __launch_bounds__(RingCompactShape<T, kSelector>::kThreads, 1)
    RingCompactKernel(const __grid_constant__ CompactParams<T> p) {
#ifdef PREFIXD_HAS_BULK_COPY
  extern __shared__ __align__(128) std::byte s_memory[];
  RingCompact<T, kSelector>(p, *reinterpret_cast<RingCompactShared<T, kSelector>*>(s_memory)).Run();
#endif
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_
