// Compact, single pass, at the speed of a copy, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
// As in ring_scan.cuh, a tile is published long before it is moved, by warps that do only that:
//   load       takes tickets, and loads their elements and mask: a ticket as soon as the stages that it replaces have
//   been
//              selected, because an atomic takes as long as it takes to empty them
//   select     8 warps: which elements of the stage are kept, as bits, and how many
//   publish    the tile's count, which other blocks wait for
//   look back  one warp: where the tile's kept elements go
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
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T, Selector kSelector>
struct RingCompactShape : RingShape<T, kSelector == Selector::kByteMask ? 12 : 13> {
  using Base = RingShape<T, kSelector == Selector::kByteMask ? 12 : 13>;
  static constexpr bool kHasMask = kSelector == Selector::kByteMask;
  // A mask is needed less long than its elements, until they are selected: fewer masks than stages.
  static constexpr int kMasks = 6;
  static constexpr int kRowItems = 4 * kWarpThreads;
  static constexpr int kRows = Base::kStageItems / kRowItems;
  // Where a bulk store can begin, in items.
  static constexpr int kBulkItems = kBulkAlignment / sizeof(T);

  static constexpr int kSelectWarps = 8;
  static constexpr int kGatherWarps = kSelectWarps;  // Each gathers what its like selects.
  static constexpr int kWarpRows = kRows / kSelectWarps;
  static_assert(kWarpRows * kSelectWarps == kRows && kWarpRows <= 4);
  // Warps by role.
  static constexpr int kPublishWarp = kSelectWarps + kGatherWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  static constexpr int kLoadWarp = kLookBackWarp + 1;
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
  uint16_t kept[kStages][Shape::kGatherWarps][kWarpThreads];  // Of a lane's elements, 4 of each row: those kept.
  uint32_t warp_counts[kStages][Shape::kGatherWarps];
  uint32_t counts[kStages];   // Kept elements of the stage,
  uint32_t offsets[kStages];  // of the tile's stages before it,
  uint64_t slots[kStages];    // and of all tiles before.
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
    if (warp == Shape::kLoadWarp && LaneOfWarp() == 0) {
      PrefetchTicket<Shape>(blockIdx.x, p_.in, p_.num_items);
      if (Shape::kHasMask) PrefetchTicket<Shape>(blockIdx.x, p_.mask, p_.num_items);
      ticket = p_.states.TakeTile();
    }
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
    } else if (warp == Shape::kLookBackWarp) {
      LookBack(epoch);
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
    for (int warp = 0; warp < Shape::kGatherWarps; ++warp) count += s_.warp_counts[stage][warp];
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
        s_.ring, first_ticket, p_.num_tiles,
        [&](Position replaced) { s_.selected[replaced.stage].Wait(replaced.parity); },
        [&] { return p_.states.TakeTile(); },
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
    constexpr uint32_t kAll = (1u << 4 * Shape::kWarpRows) - 1;
    const uint32_t flip = p_.invert ? kAll : 0;
    RingPosition<Shape::kMasks> mask;
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      const bool whole = IsWhole(begin);
      uint32_t kept = 0;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        const int first_item = FirstItem(warp, row);
        if (!whole) LoadPartial(at.stage, mask.stage, begin, first_item);
        kept |= SelectItems(at.stage, mask.stage, first_item) << 4 * row;
      }
      kept ^= flip;
      if (!whole) kept &= Existing(warp, begin);
      s_.kept[at.stage][warp][LaneOfWarp()] = static_cast<uint16_t>(kept);
      const uint32_t count = WarpTotal<CountSum>(static_cast<uint32_t>(__popc(kept)));
      if (LaneOfWarp() == 0) s_.warp_counts[at.stage][warp] = count;
      ArriveAsWarp(s_.selected[at.stage]);
      mask.Next();
    });
  }

  // The lane's first item of a row of the warp's.
  __device__ static int FirstItem(int warp, int row) {
    return (warp * Shape::kWarpRows + row) * Shape::kRowItems + 4 * LaneOfWarp();
  }

  // Which of the lane's items exist.
  __device__ uint32_t Existing(int warp, uint64_t begin) const {
    uint32_t existing = 0;
    for (int i = 0; i < 4 * Shape::kWarpRows; ++i) {
      if (begin + FirstItem(warp, i / 4) + i % 4 < p_.num_items) existing |= 1u << i;
    }
    return existing;
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

  // Bit i: item i is selected.
  __device__ uint32_t SelectItems(uint32_t stage, uint32_t mask, int first_item) const {
    uint32_t selected = 0;
    if constexpr (Shape::kHasMask) {
      const uint32_t bytes = *reinterpret_cast<const uint32_t*>(&s_.masks[mask][first_item]);
      selected = __dp4a(__vcmpne4(bytes, 0) & 0x08040201u, 0x01010101u, 0u);
    } else {
      T items[4];
      LoadRun(&s_.items[stage][first_item], items);
#pragma unroll
      for (int i = 0; i < 4; ++i) selected |= p_.kept.Contains(items[i]) ? 1u << i : 0;
    }
    return selected;
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
  __device__ void LookBack(uint32_t epoch) {
    // The groups that are published while the other blocks take a ticket each, and one.
    WarpFold<CountSum, 6, uint64_t> fold(p_.states, epoch, 0, 0);
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      fold.WaitFor(ticket);
      for (int stage = 0; stage < Shape::kTicketStages; ++stage, at.Next()) {
        if (LaneOfWarp() != 0) continue;
        s_.ring.loaded[at.stage].Wait(at.parity);  // What is there of another ticket is needed until then.
        s_.slots[at.stage] = fold.Prefix();
        s_.placed[at.stage].Arrive();
      }
    });
    // The block needs no more of the states: what its publisher may still publish, nobody waits for.
    if (LaneOfWarp() == 0) p_.states.Leave();
  }

  // ---- Gather ----
  __device__ void Gather(int warp) {
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t, int) {
      s_.selected[at.stage].Wait(at.parity);
      const uint32_t kept = s_.kept[at.stage][warp][LaneOfWarp()];
      uint32_t rank = 0;  // Of the warp's first kept element, in the stage.
#pragma unroll
      for (int w = 0; w < Shape::kGatherWarps; ++w) rank += w < warp ? s_.warp_counts[at.stage][w] : 0;
      T items[Shape::kWarpRows][4];
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        LoadRun(&s_.items[at.stage][FirstItem(warp, row)], items[row]);
      }
      // The rows' counts up to each lane, a byte a row.
      uint32_t counts = 0;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) counts |= __popc(kept >> 4 * row & 0xf) << 8 * row;
      const uint32_t up_to = WarpTrees<CountSum>(counts);
      const uint32_t rows = ShuffleFrom(up_to, kWarpThreads - 1);
      const uint32_t before = up_to - counts;
      s_.placed[at.stage].Wait(at.parity);
      T* gathered = s_.items[at.stage] + ShiftOf(at.stage);
      SyncTeam<1, Shape::kGatherWarps * kWarpThreads>();  // All have read what all now overwrite.
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        T* next = gathered + rank + (before >> 8 * row & 0xff);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((kept >> (4 * row + i) & 1) != 0) *next++ = items[row][i];
        }
        rank += rows >> 8 * row & 0xff;
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
