// Compact, single pass, at the speed of a copy, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
// As in ring_scan.cuh, a tile is published long before it is moved, by warps that do only that. The roles of the warps:
//   load       one thread: takes tickets, and loads their elements and mask. It takes a ticket as soon as the stages
//              that it will replace have been selected, because the atomic takes as long as emptying these stages
//   select     8 warps: find which elements of the stage are kept, as bits, and count them
//   publish    one warp: publishes the tile's count, which other blocks wait for
//   enter      one warp: waits until the queue has room for what is kept of the stage, and says where in it that goes
//   gather     1 or 2 teams of 8 warps, which take the stages in turn: move the kept elements of the stage, without
//              gaps, into the queue, and free the stage
//   look back  one warp: finds where the tile's kept elements go
//   store      2 or 4 warps, which take the stages in turn: move the kept elements from the queue to their place
// So only kept elements wait for other blocks, not all that were loaded, and more loads can be in flight.
// A tile is a ticket, and a ticket is two stages. A row is a run of 4 items in each lane, or two narrow runs of 16
// bytes, which are neighbours.
// Bulk copies begin at multiples of 16 bytes. So where the array does not, its items are counted from the one before:
// the first slots have none. The mask is shifted into place as it is read.
// Traffic: reads n (and the mask; with a mask, the elements only if they are wanted), writes what is kept.
// Source: Merrill and Garland 2016; see look_back.cuh.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_compact_narrow.cuh"
#include "kernels/cuda/ring_compact_select.cuh"
#include "kernels/cuda/ring_compact_shape.cuh"
#include "kernels/cuda/ring_move.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/stage_words.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T, Selector kSelector, bool kIndices>
class RingCompact {
 public:
  using Shape = RingCompactShape<T, kSelector, kIndices>;
  using Shared = RingCompactShared<T, kSelector, kIndices>;
  using Position = RingPosition<Shape::kStages>;

  __device__ RingCompact(const CompactParams<T>& p, Shared& s)
      : p_(p),
        s_(s),
        mask_offset_(Shape::kHasMask ? (BytesIntoWord(p.mask) * Shape::kMaskByteItems - uint32_t(p.skipped)) %
                                           (kBulkAlignment * Shape::kMaskByteItems)
                                     : 0) {}

  __device__ void Run() {
    const int warp = WarpOfBlock();
    // The load thread takes its first ticket while the block gets ready.
    uint32_t ticket = 0;
    if (warp == Shape::kLoadWarp && LaneOfWarp() == 0) {
      Prefetch(blockIdx.x);
      ticket = p_.states.TakeTile();
    }
    if (threadIdx.x == 0) {
      s_.ring.Init(Shape::kTeamWarps + 2);  // A team of gather warps, the publish warp and the enter warp.
      for (int i = 0; i < kStages; ++i) s_.selected[i].Init(Shape::kSelectWarps * kWarpArrivals);
      for (int i = 0; i < Shape::kQueueStages; ++i) {
        s_.entered[i].Init(kWarpArrivals);
        s_.gathered[i].Init(Shape::kTeamWarps * kWarpArrivals);
        s_.stored[i].Init(kWarpArrivals);
      }
      for (int i = 0; i < Shape::kQueueTickets; ++i) {
        s_.published[i].Init(kWarpArrivals);
        s_.placed[i].Init(kWarpArrivals);
      }
      FenceBarrierInit();
    }
    if constexpr (Shape::kHasNarrowRuns) {
      for (uint32_t kept = threadIdx.x; kept < s_.selectors.kWays; kept += Shape::kThreads) s_.selectors.Set(kept);
      if constexpr (kIndices) {
        if (threadIdx.x < s_.place_selectors.kWays) s_.place_selectors.Set(threadIdx.x);
      }
    }
    const uint32_t epoch = p_.states.Epoch();
    __syncthreads();
    if (warp < Shape::kSelectWarps) {
      Select(warp);
    } else if (warp < Shape::kPublishWarp) {
      Gather(warp - Shape::kSelectWarps);
    } else if (warp == Shape::kPublishWarp) {
      Publish(epoch);
    } else if (warp == Shape::kEnterWarp) {
      Enter();
    } else if (warp == Shape::kLookBackWarp) {
      LookBack(epoch);
    } else if (warp == Shape::kLoadWarp) {
      if (LaneOfWarp() == 0) Load(ticket);
    } else {
      Store(warp - Shape::kStoreWarp);
    }
  }

 private:
  static constexpr int kStages = Shape::kStages;
  using Selection =
      std::conditional_t<Shape::kHasNarrowRuns, NarrowSelection<T, kSelector>, RunSelection<T, kSelector>>;
  using Piece = std::conditional_t<Shape::kHasNarrowRuns, uint32_t, BitsOf<T>>;  // A run is four.

  // Whether all of a stage's items exist, and all bytes of the words that their masks are in.
  __device__ bool IsWhole(uint64_t begin) const {
    const uint64_t behind = mask_offset_ != 0 ? kBulkAlignment * Shape::kMaskByteItems : 0;
    return begin >= p_.skipped && begin + Shape::kStageItems + behind <= p_.num_items;
  }

  using QueuePosition = RingPosition<Shape::kQueueStages>;
  using TicketPosition = RingPosition<Shape::kQueueTickets>;

  __device__ bool WantsValues() const { return !kIndices || p_.values != nullptr; }
  // Whether the elements are read: for a mask, only where they are wanted.
  __device__ bool NeedsItems() const { return kSelector == Selector::kPredicate || WantsValues(); }

  // The words of a whole stage's mask. Its first item's is mask_offset_ bytes, or bits, into the first word.
  __device__ const uint8_t* MaskWords(uint64_t begin) const {
    const uint8_t* first = p_.mask + (begin - p_.skipped) / Shape::kMaskByteItems;
    return first - BytesIntoWord(first);
  }
  __device__ uint32_t NumMaskBytes() const { return Shape::kMaskBytes + (mask_offset_ != 0 ? kBulkAlignment : 0); }

  // ---- Load: one thread ----
  __device__ void Prefetch(uint32_t ticket) const {
    for (int sub = 0; sub < Shape::kTicketStages; ++sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      if (!IsWhole(begin)) continue;
      if (NeedsItems()) BulkPrefetch(p_.in + begin, Shape::kStageBytes);
      if constexpr (Shape::kHasMask) BulkPrefetch(MaskWords(begin), NumMaskBytes());
    }
  }

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
          const uint32_t mask_stage = mask.stage;
          mask.Next();
          if (!IsWhole(begin)) return loaded.Arrive();
          loaded.ArriveExpecting((NeedsItems() ? Shape::kStageBytes : 0) + (Shape::kHasMask ? NumMaskBytes() : 0));
          if (NeedsItems()) BulkLoad(s_.items[stage], p_.in + begin, Shape::kStageBytes, &loaded);
          if constexpr (Shape::kHasMask) {
            BulkLoad(s_.masks[mask_stage], MaskWords(begin), NumMaskBytes(), &loaded);
          }
        });
  }

  // ---- Select ----
  __device__ void Select(int warp) {
    const Selection selection(p_, mask_offset_);
    const uint32_t flip = p_.invert ? (1u << Shape::kRunItems) - 1 : 0;
    const int first_row = warp * Shape::kWarpRows;
    RingPosition<Shape::kMasks> mask;
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      const bool whole = IsWhole(begin);
      uint32_t counts = 0;  // kCountBits a row.
      const auto select = [&](int first_item) {
        return selection.Selected(s_.items[at.stage], s_.masks[mask.stage], first_item) ^ flip;
      };
      const auto load_and_keep = [&](int first_item) {
        return selection.LoadAndKeep(s_.items[at.stage], begin, first_item, NeedsItems());
      };
      const auto keep = [&](int row, uint32_t kept) {
        s_.kept[at.stage][first_row + row][LaneOfWarp()] = static_cast<typename Shape::KeptBits>(kept);
        counts |= __popc(kept) << Shape::kCountBits * row;
      };
      if constexpr (Shape::kHasNarrowRuns) {
        // Without a branch or a store in between, rows are worked on together.
        uint32_t kept[Shape::kWarpRows];
        const auto keep_rows = [&](auto&& run_bits) {
#pragma unroll
          for (int row = 0; row < Shape::kWarpRows; ++row) kept[row] = Shape::LaneBits(first_row + row, run_bits);
        };
        whole ? keep_rows(select) : keep_rows(load_and_keep);
#pragma unroll
        for (int row = 0; row < Shape::kWarpRows; ++row) keep(row, kept[row]);
      } else {
#pragma unroll
        for (int row = 0; row < Shape::kWarpRows; ++row) {
          const int first_item = Shape::FirstItem(first_row + row, 0);
          keep(row, whole ? select(first_item) : load_and_keep(first_item));
        }
      }
      counts = WarpTotal<CountSum>(counts);
      if (LaneOfWarp() < Shape::kWarpRows) {
        s_.row_counts[at.stage][first_row + LaneOfWarp()] =
            static_cast<typename Shape::RowCount>(counts >> Shape::kCountBits * LaneOfWarp());
      }
      ArriveAsWarp(s_.selected[at.stage]);
      mask.Next();
    });
  }

  // ---- Publish ----
  __device__ void Publish(uint32_t epoch) {
    TicketPosition queued;
    QueuePosition stored;  // The stages of the ticket that the entry held before.
    int num_tickets = 0;
    const auto enqueue = [&](uint32_t ticket) {
      if (num_tickets++ >= Shape::kQueueTickets) {
        for (int stage = 0; stage < Shape::kTicketStages; ++stage, stored.Next()) {
          s_.stored[stored.stage].Wait(stored.parity);
        }
      }
      if (LaneOfWarp() == 0) s_.tickets[queued.stage].ticket = ticket;
      ArriveAsWarp(s_.published[queued.stage]);
      queued.Next();
    };
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      uint32_t counts = 0;
      for (int stage = 0; stage < Shape::kTicketStages; ++stage, at.Next()) {
        s_.selected[at.stage].Wait(at.parity);
        __syncwarp();
        if (LaneOfWarp() < Shape::kRows) counts += s_.row_counts[at.stage][LaneOfWarp()];
        ArriveAsWarp(s_.ring.freed[at.stage]);
      }
      const uint32_t count = WarpTotal<CountSum>(counts);
      if (LaneOfWarp() == 0) p_.states.Publish(ticket, epoch, count);
      enqueue(ticket);
    });
    enqueue(RingState<kStages>::kEnd);
  }

  // ---- Look back ----
  __device__ void LookBack(uint32_t epoch) {
    // As many groups as are published while every other block takes one ticket, and one more.
    WarpFold<CountSum, 6, uint64_t> fold(p_.states, epoch, 0, 0);
    for (TicketPosition at;; at.Next()) {
      s_.published[at.stage].Wait(at.parity);
      const uint32_t ticket = s_.tickets[at.stage].ticket;
      if (ticket == RingState<kStages>::kEnd) break;
      fold.WaitFor(ticket);
      if (LaneOfWarp() == 0) s_.tickets[at.stage].slot = fold.Prefix();
      ArriveAsWarp(s_.placed[at.stage]);
    }
    // The block reads no more states. Its publisher may still write some, but no block waits for those.
    if (LaneOfWarp() == 0) p_.states.Leave();
  }

  // ---- Enter ----
  // Waits until the queue has room for what is kept of a stage, and says where in it that goes.
  __device__ void Enter() {
    QueuePosition queued;
    QueuePosition stored;     // The first stage in the queue that is not known to be stored.
    uint32_t num_queued = 0;  // In stages.
    uint32_t num_stored = 0;
    uint32_t end = 0;    // The end of all that was queued so far, in items.
    uint32_t begin = 0;  // The first item that is still in the queue.
    uint32_t offset = 0;
    const auto enter = [&](uint32_t ticket, uint32_t count, uint16_t row_rank) {
      while (end + count - begin > Shape::kQueueItems || num_queued - num_stored == Shape::kQueueStages) {
        s_.stored[stored.stage].Wait(stored.parity);
        begin += s_.stages[stored.stage].count;
        ++num_stored;
        stored.Next();
      }
      __syncwarp();
      if (LaneOfWarp() == 0) s_.stages[queued.stage] = {ticket, end, count, offset};
      if (LaneOfWarp() < Shape::kRows) s_.row_ranks[queued.stage][LaneOfWarp()] = row_rank;
      ArriveAsWarp(s_.entered[queued.stage]);
      queued.Next();
      ++num_queued;
      end += count;
      offset += count;
    };
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      s_.selected[at.stage].Wait(at.parity);
      const uint32_t row_count = LaneOfWarp() < Shape::kRows ? s_.row_counts[at.stage][LaneOfWarp()] : 0;
      ArriveAsWarp(s_.ring.freed[at.stage]);
      const uint32_t up_to = WarpTrees<CountSum>(row_count);
      if (sub == 0) offset = 0;
      enter(ticket, ShuffleFrom(up_to, kWarpThreads - 1), static_cast<uint16_t>(up_to - row_count));
    });
    for (int i = 0; i < Shape::kStoreWarps; ++i) enter(RingState<kStages>::kEnd, 0, 0);
  }

  // ---- Gather ----
  __device__ void Gather(int warp) {
    const int team = warp / Shape::kTeamWarps;
    const int first_row = warp % Shape::kTeamWarps * Shape::kWarpRows;
    QueuePosition queued = {.stage = static_cast<uint32_t>(team)};
    const auto leave_stage = [&] {
      ArriveAsWarp(s_.gathered[queued.stage]);
      for (int i = 0; i < Shape::kTeams; ++i) queued.Next();
    };
    const auto gather = [&](Position at, uint32_t /*ticket*/, int /*sub*/) {
      s_.selected[at.stage].Wait(at.parity);
      uint32_t kept[Shape::kWarpRows];
      Piece runs[Shape::kWarpRows][Shape::kRowRuns][4];
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        kept[row] = s_.kept[at.stage][first_row + row][LaneOfWarp()];
#pragma unroll
        for (int visit = 0; visit < Shape::kRowRuns; ++visit) {
          const T* s_run = &s_.items[at.stage][Shape::FirstItem(first_row + row, visit)];
          LoadRun(reinterpret_cast<const Piece*>(s_run), runs[row][visit]);
        }
      }
      ArriveAsWarp(s_.ring.freed[at.stage]);
      if constexpr (Shape::kHasNarrowRuns) {
#pragma unroll
        for (int row = 0; row < Shape::kWarpRows; ++row) {
          PackRun(Shape::FirstVisit(kept[row]), s_.selectors, runs[row][0]);
          PackRun(kept[row] >> Shape::kRunItems, s_.selectors, runs[row][1]);
        }
      }
      // The counts of the rows up to each lane: kCountBits a row.
      uint32_t counts = 0;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) counts |= __popc(kept[row]) << Shape::kCountBits * row;
      const uint32_t before = WarpTrees<CountSum>(counts) - counts;
      s_.entered[queued.stage].Wait(queued.parity);
      const uint32_t begin = s_.stages[queued.stage].begin;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        const uint32_t rank = s_.row_ranks[queued.stage][first_row + row] + CountOf(before, row);
        MoveKept(runs[row], kept[row], begin + rank, first_row + row);
      }
      leave_stage();
    };
    ForEachStage<Shape, Shape::kTeams>(s_.ring, gather, team);
    for (int i = team; i < Shape::kStoreWarps; i += Shape::kTeams) {  // The ends of the store warps.
      s_.entered[queued.stage].Wait(queued.parity);
      leave_stage();
    }
  }

  // The count of a row in a word that has kCountBits for each.
  __device__ static uint32_t CountOf(uint32_t counts, int row) {
    return counts >> Shape::kCountBits * row & 0xffffffffu >> (32 - Shape::kCountBits);
  }

  // Moves the lane's kept items of a row to the queue, from its item `to` on, which counts on where the queue begins
  // again, and their places beside them.
  __device__ void MoveKept(const Piece (&runs)[Shape::kRowRuns][4], uint32_t kept, uint32_t to, int row) {
    if constexpr (Shape::kHasNarrowRuns) {
      const uint32_t begin = to % Shape::kQueueItems;
      const uint32_t kept_of[2] = {Shape::FirstVisit(kept), kept >> Shape::kRunItems};
      const uint32_t begin_of[2] = {Shape::BeginsWithSecond() ? begin + __popc(kept_of[1]) : begin,
                                    Shape::BeginsWithSecond() ? begin : begin + __popc(kept_of[0])};
      if (WantsValues()) {
        auto* const s_queue = reinterpret_cast<unsigned char*>(s_.queue);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          StorePacked<sizeof(T)>(runs[i], kept_of[i], begin_of[i] * static_cast<uint32_t>(sizeof(T)), s_queue);
        }
      }
      if constexpr (kIndices) {
#pragma unroll
        for (int i = 0; i < 2; ++i) StorePlaces(kept_of[i], begin_of[i], Shape::FirstItem(row, i));
      }
      const uint32_t end = begin + __popc(kept);
      CopyFromBehind<Shape::kQueueItems>(end, s_.queue);
      if constexpr (kIndices) CopyFromBehind<Shape::kQueueItems>(end, s_.places);
    } else {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t is_kept = kept >> i & 1;
        const uint32_t at = to % Shape::kQueueItems;
        const Piece item = runs[0][i];
        if constexpr (kIndices) {  // The compiler would branch: a quarter slower.
          StoreSharedIf(is_kept, SharedAddressOf(&s_.queue[at]), item);
          StoreSharedIf(is_kept, SharedAddressOf(&s_.places[at]), static_cast<uint16_t>(Shape::FirstItem(row, 0) + i));
        } else if (is_kept != 0) {
          reinterpret_cast<Piece*>(s_.queue)[at] = item;
        }
        to += is_kept;
      }
    }
  }

  // Stores the places of the kept items of a narrow run from place `begin` of the queue on. They are packed as items of
  // two bytes, eight at once.
  __device__ void StorePlaces(uint32_t kept, uint32_t begin, uint32_t first_place) {
    constexpr uint32_t kBytes = sizeof(uint16_t);
    auto* const s_places = reinterpret_cast<unsigned char*>(s_.places);
#pragma unroll
    for (int first = 0; first < Shape::kRunItems; first += 8) {
      const uint32_t kept_here = kept >> first & 0xff;
      const uint32_t two = (first_place + first) * 0x00010001u + 0x00010000u;
      uint32_t words[4] = {two, two + 0x00020002u, two + 0x00040004u, two + 0x00060006u};
      PackRun(kept_here, s_.place_selectors, words);
      StorePacked<kBytes>(words, kept_here, begin * kBytes, s_places);
      begin += __popc(kept_here);
    }
  }

  // ---- Store ----
  __device__ void Store(int warp) {
    int turn = warp;
    TicketPosition ticket;
    int sub = 0;
    for (QueuePosition at;; at.Next()) {
      if (turn == 0) {
        s_.gathered[at.stage].Wait(at.parity);
        const auto stage = s_.stages[at.stage];
        if (stage.ticket == RingState<kStages>::kEnd) return;
        s_.placed[ticket.stage].Wait(ticket.parity);
        const uint64_t slot = s_.tickets[ticket.stage].slot + stage.offset;
        if (WantsValues()) {
          MoveFromRing<T, Shape::kQueueItems>(s_.queue, stage.begin, stage.count, p_.values + slot);
        }
        if constexpr (kIndices) {
          const uint64_t first_index = p_.first_item + Shape::StageBegin(stage.ticket, sub);
          constexpr uint32_t kRing = Shape::kQueueItems;
          p_.indices_u32 != nullptr
              ? MoveIndicesFromRing<kRing>(s_.places, stage.begin, stage.count, static_cast<uint32_t>(first_index),
                                           p_.indices_u32 + slot)
              : MoveIndicesFromRing<kRing>(s_.places, stage.begin, stage.count, first_index, p_.indices_u64 + slot);
        }
        if (LaneOfWarp() == 0 && stage.ticket == p_.num_tiles - 1 && sub == Shape::kTicketStages - 1) {
          *p_.count = slot + stage.count;
          *p_.h_num_kept = slot + stage.count;
        }
        ArriveAsWarp(s_.stored[at.stage]);
        turn = Shape::kStoreWarps;
      }
      --turn;
      if (++sub == Shape::kTicketStages) {
        sub = 0;
        ticket.Next();
      }
    }
  }

  const CompactParams<T>& p_;
  Shared& s_;
  const uint32_t mask_offset_;
};

// p.num_tiles: the number of tickets. Threads and shared memory: those of RingCompactShape and RingCompactShared.
template <class T, Selector kSelector, bool kIndices>
__global__ void __launch_bounds__(RingCompactShape<T, kSelector, kIndices>::kThreads, 1)
    RingCompactKernel(const __grid_constant__ CompactParams<T> p) {
  static_assert(sizeof(RingCompactShared<T, kSelector, kIndices>) <= kMaxRingBytes, "no block has more");
#ifdef PREFIXD_HAS_BULK_COPY
  extern __shared__ __align__(128) std::byte s_memory[];
  RingCompact<T, kSelector, kIndices>(p, *reinterpret_cast<RingCompactShared<T, kSelector, kIndices>*>(s_memory)).Run();
#endif
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_
