// Compact, single pass, at the speed of a copy, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
// As in ring_scan.cuh, a tile is published long before it is moved, by warps that do only that. The roles of the warps:
//   load       one thread: takes tickets, and loads their elements and mask. It takes a ticket as soon as the stages
//              that it will replace have been selected, because the atomic takes as long as emptying these stages
//   select     8 warps: find which elements of the stage are kept, as bits, and count them
//   publish    one warp: publishes the tile's count, which other blocks wait for
//   gather     8 warps: move the kept elements of the stage, without gaps, into the queue, and free the stage
//   look back  one warp: finds where the tile's kept elements go
//   store      2 warps, which take the stages in turn: move the kept elements from the queue to their place
// So only kept elements wait for other blocks, not all that were loaded, and more loads can be in flight.
// A tile is a ticket, and a ticket is two stages. A row is 128 items, 4 in each lane.
// Bulk copies begin at multiples of 16 bytes. So where the array does not, its items are counted from the one before:
// the first slots have none. The mask is shifted into place as it is read.
// Traffic: reads n (and the mask; with a mask, the elements only if they are wanted), writes what is kept.
// Source: Merrill and Garland 2016; see look_back.cuh.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_compact_shape.cuh"
#include "kernels/cuda/ring_move.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/stage_words.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T, Selector kSelector, bool kIndices>
struct RingCompactShared {
  using Shape = RingCompactShape<T, kSelector, kIndices>;
  static constexpr int kStages = Shape::kStages;

  // The kept elements of a stage, as they lie in the queue.
  struct QueuedStage {
    uint32_t ticket;  // Or RingState::kEnd.
    uint32_t begin;   // Where its first one is in the queue, modulo the queue's length.
    uint32_t count;
    uint32_t offset;  // Its first one's rank in the ticket.
  };
  struct QueuedTicket {
    uint64_t slot;  // Where in the result the ticket's first kept element goes.
    uint32_t ticket;
  };

  alignas(128) T items[kStages][Shape::kStageItems];
  alignas(128) T queue[Shape::kQueueItems];
  uint16_t places[kIndices ? Shape::kQueueItems : 1];  // Those of the items in the queue, in their stages.
  alignas(128) unsigned char masks[Shape::kMasks][Shape::kMaskBytes + kBulkAlignment];
  uint8_t kept[kStages][Shape::kRows][kWarpThreads];  // A bit for each of a lane's four elements of a row: is it kept?
  uint8_t row_counts[kStages][Shape::kRows];
  QueuedStage stages[Shape::kQueueStages];
  QueuedTicket tickets[Shape::kQueueTickets];
  RingState<kStages> ring;
  Barrier selected[kStages];
  Barrier gathered[Shape::kQueueStages];
  Barrier stored[Shape::kQueueStages];
  Barrier published[Shape::kQueueTickets];
  Barrier placed[Shape::kQueueTickets];
};

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
      s_.ring.Init(Shape::kGatherWarps + 1);  // The gather warps, and the publish warp.
      for (int i = 0; i < kStages; ++i) s_.selected[i].Init(Shape::kSelectWarps * kWarpArrivals);
      for (int i = 0; i < Shape::kQueueStages; ++i) {
        s_.gathered[i].Init(Shape::kGatherWarps * kWarpArrivals);
        s_.stored[i].Init(kWarpArrivals);
      }
      for (int i = 0; i < Shape::kQueueTickets; ++i) {
        s_.published[i].Init(kWarpArrivals);
        s_.placed[i].Init(kWarpArrivals);
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
      Publish(epoch);
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

  // Whether all of a stage's items exist, and all bytes of the words that their masks are in.
  __device__ bool IsWhole(uint64_t begin) const {
    const uint64_t behind = mask_offset_ != 0 ? kBulkAlignment * Shape::kMaskByteItems : 0;
    return begin >= p_.skipped && begin + Shape::kStageItems + behind <= p_.num_items;
  }

  using QueuePosition = RingPosition<Shape::kQueueStages>;
  using TicketPosition = RingPosition<Shape::kQueueTickets>;

  // Whether the elements are read: for a mask, only where they are wanted.
  __device__ bool NeedsItems() const { return !kIndices || kSelector == Selector::kPredicate || p_.values != nullptr; }

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
    const uint32_t flip = p_.invert ? 0xf : 0;
    const int first_row = warp * Shape::kWarpRows;
    RingPosition<Shape::kMasks> mask;
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      const bool whole = IsWhole(begin);
      uint32_t counts = 0;  // A byte a row.
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        const int first_item = FirstItem(first_row + row);
        const uint32_t kept =
            whole ? SelectItems(at.stage, mask.stage, first_item) ^ flip : LoadAndSelect(at.stage, begin, first_item);
        s_.kept[at.stage][first_row + row][LaneOfWarp()] = static_cast<uint8_t>(kept);
        counts |= __popc(kept) << 8 * row;
      }
      counts = WarpTotal<CountSum>(counts);
      if (LaneOfWarp() < Shape::kWarpRows) {
        s_.row_counts[at.stage][first_row + LaneOfWarp()] = static_cast<uint8_t>(counts >> 8 * LaneOfWarp());
      }
      ArriveAsWarp(s_.selected[at.stage]);
      mask.Next();
    });
  }

  // The lane's first item of a row.
  __device__ static int FirstItem(int row) { return row * Shape::kRowItems + 4 * LaneOfWarp(); }

  // Bit i: item first_item + i of a whole stage is selected.
  __device__ uint32_t SelectItems(uint32_t stage, uint32_t mask, int first_item) const {
    uint32_t selected = 0;
    if constexpr (kSelector == Selector::kByteMask) {
      const auto* s_words = reinterpret_cast<const uint32_t*>(s_.masks[mask]) + (mask_offset_ + first_item) / 4;
      const uint32_t bytes = __funnelshift_r(s_words[0], s_words[1], 8 * (mask_offset_ % 4));
      selected = __dp4a(__vcmpne4(bytes, 0) & 0x08040201u, 0x01010101u, 0u);
    } else if constexpr (kSelector == Selector::kBitMask) {
      const uint32_t bit = mask_offset_ + first_item;
      const uint32_t bytes = s_.masks[mask][bit / 8] | s_.masks[mask][(bit + 3) / 8] << 8;
      selected = bytes >> bit % 8 & 0xf;
    } else {
      T items[4];
      LoadRun(&s_.items[stage][first_item], items);
#pragma unroll
      for (int i = 0; i < 4; ++i) selected |= Contains(p_.kept, items[i]) ? 1u << i : 0;
    }
    return selected;
  }

  // Loads those of the lane's items that exist; the others may be anything. Bit i: item first_item + i exists, and is
  // kept.
  __device__ uint32_t LoadAndSelect(uint32_t stage, uint64_t begin, int first_item) {
    uint32_t kept = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint64_t slot = begin + first_item + i;
      if (slot < p_.skipped || slot >= p_.num_items) continue;
      if (NeedsItems()) s_.items[stage][first_item + i] = p_.in[slot];
      if (IsSelected<T, kSelector>(p_, s_.items[stage][first_item + i], slot - p_.skipped) != p_.invert)
        kept |= 1u << i;
    }
    return kept;
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

  // ---- Gather ----
  __device__ void Gather(int warp) {
    const int first_row = warp * Shape::kWarpRows;
    QueuePosition queued;
    QueuePosition stored;     // The first stage in the queue that is not known to be stored.
    uint32_t num_queued = 0;  // In stages.
    uint32_t num_stored = 0;
    uint32_t end = 0;    // The end of all that was queued so far, in items.
    uint32_t begin = 0;  // The first item that is still in the queue.
    uint32_t offset = 0;
    // Waits until the queue has room, and enters the stage. The first warp does so for all.
    const auto enqueue = [&](uint32_t ticket, uint32_t count) {
      if (warp == 0) {
        while (end + count - begin > Shape::kQueueItems || num_queued - num_stored == Shape::kQueueStages) {
          s_.stored[stored.stage].Wait(stored.parity);
          begin += s_.stages[stored.stage].count;
          ++num_stored;
          stored.Next();
        }
        __syncwarp();
        if (LaneOfWarp() == 0) s_.stages[queued.stage] = {ticket, end, count, offset};
      }
      SyncTeam<1, Shape::kGatherWarps * kWarpThreads>();
    };
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      s_.selected[at.stage].Wait(at.parity);
      const uint32_t row_count = LaneOfWarp() < Shape::kRows ? s_.row_counts[at.stage][LaneOfWarp()] : 0;
      uint32_t kept[Shape::kWarpRows];
      T items[Shape::kWarpRows][4];
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        kept[row] = s_.kept[at.stage][first_row + row][LaneOfWarp()];
        LoadRun(&s_.items[at.stage][FirstItem(first_row + row)], items[row]);
      }
      ArriveAsWarp(s_.ring.freed[at.stage]);
      const uint32_t count = WarpTotal<CountSum>(row_count);
      uint32_t rank =
          WarpTotal<CountSum>(LaneOfWarp() < first_row ? row_count : 0);  // The rank of the warp's first kept item.
      // The counts of the rows up to each lane, its own included: a byte a row.
      uint32_t counts = 0;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) counts |= __popc(kept[row]) << 8 * row;
      const uint32_t up_to = WarpTrees<CountSum>(counts);
      const uint32_t rows = ShuffleFrom(up_to, kWarpThreads - 1);
      const uint32_t before = up_to - counts;
      if (sub == 0) offset = 0;
      enqueue(ticket, count);
      rank += end;
#pragma unroll
      for (int row = 0; row < Shape::kWarpRows; ++row) {
        uint32_t next = rank + (before >> 8 * row & 0xff);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((kept[row] >> i & 1) == 0) continue;
          const uint32_t place = next++ % Shape::kQueueItems;
          s_.queue[place] = items[row][i];
          if constexpr (kIndices) s_.places[place] = static_cast<uint16_t>(FirstItem(first_row + row) + i);
        }
        rank += rows >> 8 * row & 0xff;
      }
      ArriveAsWarp(s_.gathered[queued.stage]);
      queued.Next();
      ++num_queued;
      end += count;
      offset += count;
    });
    for (int i = 0; i < Shape::kStoreWarps; ++i, queued.Next(), ++num_queued) {
      enqueue(RingState<kStages>::kEnd, 0);
      ArriveAsWarp(s_.gathered[queued.stage]);
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
        if (!kIndices || p_.values != nullptr) {
          MoveFromRing<T, Shape::kQueueItems>(s_.queue, stage.begin, stage.count, p_.values + slot);
        }
        if constexpr (kIndices) {
          const uint64_t first_index = p_.first_item + Shape::StageBegin(stage.ticket, sub);
          p_.indices_u32 != nullptr
              ? StoreIndices(stage.begin, stage.count, static_cast<uint32_t>(first_index), p_.indices_u32 + slot)
              : StoreIndices(stage.begin, stage.count, first_index, p_.indices_u64 + slot);
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

  // The indices of the `count` items from `begin` on of the queue.
  template <class Index>
  __device__ void StoreIndices(uint32_t begin, uint32_t count, Index first_index, Index* out) const {
    constexpr int kUnroll = 8;
    for (uint32_t base = 0; base < count; base += kUnroll * kWarpThreads) {
      Index indices[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        const uint32_t rank = base + k * kWarpThreads + LaneOfWarp();
        if (rank < count) indices[k] = first_index + s_.places[(begin + rank) % Shape::kQueueItems];
      }
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) {
        const uint32_t rank = base + k * kWarpThreads + LaneOfWarp();
        if (rank < count) out[rank] = indices[k];
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
#ifdef PREFIXD_HAS_BULK_COPY
  extern __shared__ __align__(128) std::byte s_memory[];
  RingCompact<T, kSelector, kIndices>(p, *reinterpret_cast<RingCompactShared<T, kSelector, kIndices>*>(s_memory)).Run();
#endif
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_CUH_
