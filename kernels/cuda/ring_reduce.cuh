// Reduce, single pass, at the speed of reading, for sm_90 and later: tiles in a ring of shared memory (ring.cuh).
//
//   load       one thread: takes tickets, and loads them
//   reduce     8 warps: compute the values of a stage's leaves
//   publish    one warp: joins the leaves to the tile's value, publishes it, and frees the stage; where the order is
//   free,
//              to one value for all tiles of a ticket
//   follow     16 warps, only in the block that took the first ticket: fold the tiles as they are published
// A ticket is a stage of 32 KiB. Three stages are enough, and more make the kernel slower: warps wait only for memory,
// and memory serves few requests at a time better than many. Traffic: reads n. One launch; nothing is reset before.
// A last stage that is not whole is loaded without bulk copies.
#ifndef PREFIXD_KERNELS_CUDA_RING_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_REDUCE_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/packed_run.cuh"
#include "kernels/cuda/reduce_parts.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/stage_words.cuh"

namespace prefixd::cuda {

template <class T>
using RingReduceTiles = RingTileShape<RingShape<T, 3, 32 * 1024, 1>, RingRunItems<T, !kIsFloating<T>>()>;

template <class T>
struct RingReduceShape : RingReduceTiles<T> {
  using Base = RingReduceTiles<T>;
  static_assert(Base::kTileStages == 1 && Base::kTicketStages == 1);
  static constexpr int kReduceWarps = 8;
  static constexpr int kReduceRows = Base::kStageLeaves / kReduceWarps;
  // Warps by role.
  static constexpr int kPublishWarp = kReduceWarps;
  static constexpr int kLoadWarp = kPublishWarp + 1;
  static constexpr int kFollowWarp = kLoadWarp + 1;
  static constexpr int kFollowWarps = 16;
  static constexpr int kThreads = (kFollowWarp + kFollowWarps) * kWarpThreads;

  static constexpr int kPacedLoads = Base::kStages;  // No pacing: nobody waits for the first loads.
};

template <class T, class Operator>
struct RingReduceShared {
  using Shape = RingReduceShape<T>;
  using Item = typename Operator::Item;
  static constexpr int kStages = Shape::kStages;

  // Elements may begin anywhere in the first word of a stage (stage_words.cuh).
  alignas(128) unsigned char items[kStages][Shape::kStageBytes + kBulkAlignment];
  // For each leaf: the tree of all its runs but the last one; where the order is free, the tree of all its runs.
  Item trees_of_runs[kStages][Shape::kStageLeaves];
  Item last_runs[kStages][Shape::kStageLeaves];
  typename GroupFold<Operator, Shape::kFollowWarps>::Shared fold;
  unsigned long long first;
  uint32_t first_ticket;
  RingState<kStages> ring;
  Barrier reduced[kStages];
};

template <class In, class Out, Op kOp>
class RingReduce {
 public:
  using Shape = RingReduceShape<In>;
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Shared = RingReduceShared<In, Operator>;
  using Position = RingPosition<Shape::kStages>;
  // The states of a ticket, which the follower waits for: one for each tile, or, where the order is free, one for all.
  static constexpr int kTicketStates = Operator::kAnyOrder ? 1 : Shape::kTicketTiles;

  __device__ RingReduce(const ReduceParams<In, Out>& p, Shared& s)
      : p_(p), s_(s), neutral_(Operator::Load(p.neutral)), epoch_(p.states.Epoch()) {}

  __device__ void Run() {
    const int warp = WarpOfBlock();
    if (warp == Shape::kLoadWarp && LaneOfWarp() == 0) {
      const uint64_t begin = Shape::StageBegin(blockIdx.x, 0);
      if (IsWhole(begin)) PrefetchWords(ItemsAt(begin), Shape::kStageBytes);
      s_.first_ticket = p_.states.TakeTile();
    }
    if (threadIdx.x == 0) {
      s_.ring.Init(1);
      for (int i = 0; i < kStages; ++i) s_.reduced[i].Init(Shape::kReduceWarps * kWarpArrivals);
      FenceBarrierInit();
    }
    __syncthreads();
    const bool is_follower = s_.first_ticket == 0;
    if (warp < Shape::kReduceWarps) {
      Reduce(warp);
    } else if (warp == Shape::kPublishWarp) {
      Publish();
      if (!is_follower && LaneOfWarp() == 0) p_.states.Leave();
    } else if (warp == Shape::kLoadWarp) {
      if (LaneOfWarp() == 0) Load(s_.first_ticket);
    } else if (is_follower) {
      Follow(warp - Shape::kFollowWarp);
    }
  }

 private:
  static constexpr int kStages = Shape::kStages;
  static constexpr int kRunItems = Shape::kRunItems;
  static constexpr int kLeafItems = Shape::kLeafItems;
  static constexpr int kTileItems = kLeafItems * kJoinSlots;
  static constexpr int kStateItems = Shape::kTicketItems / kTicketStates;
  static constexpr bool kIsPacked = !kIsFloating<In> && sizeof(In) < 4;
  using Element = std::conditional_t<kIsPacked, uint32_t, In>;

  __device__ bool IsWhole(uint64_t begin) const { return Shape::IsWhole(begin, p_.num_items); }
  // Where a stage's elements are in memory.
  __device__ const unsigned char* ItemsAt(uint64_t begin) const {
    return reinterpret_cast<const unsigned char*>(p_.in + begin);
  }
  // How many items from `begin` on exist, kTileItems at most.
  __device__ int NumValidFrom(uint64_t begin) const {
    return begin >= p_.num_items ? 0 : static_cast<int>(min(p_.num_items - begin, uint64_t{kTileItems}));
  }

  // ---- Load: one thread ----
  __device__ void Load(uint32_t first_ticket) {
    // Takes tickets one ahead: a ticket takes time, and only the follower waits for its tiles, at the end. Every ticket
    // that is taken is read, so none is in flight when the last block to leave sets the count of tickets back to 0.
    uint32_t next_ticket = first_ticket < p_.num_tiles ? p_.states.TakeTile() : first_ticket;
    LoadThroughRing<Shape>(
        s_.ring, first_ticket, p_.num_tiles,
        [&](Position replaced) { s_.ring.freed[replaced.stage].Wait(replaced.parity); },
        [&] {
          const uint32_t ticket = next_ticket;
          if (ticket < p_.num_tiles) next_ticket = p_.states.TakeTile();
          return ticket;
        },
        [&](uint32_t stage, uint32_t ticket, int sub) {
          const uint64_t begin = Shape::StageBegin(ticket, sub);
          Barrier& loaded = s_.ring.loaded[stage];
          if (!IsWhole(begin)) return loaded.Arrive();
          const WordsOfStage<In> words(s_.items[stage], ItemsAt(begin), Shape::kStageBytes,
                                       p_.num_items - begin - Shape::kStageItems);
          loaded.ArriveExpecting(words.num_bytes());
          words.Load(&loaded);
        });
  }

  // ---- Reduce ----
  __device__ void Reduce(int warp) {
    ForEachStage<Shape>(s_.ring, [&](Position at, uint32_t ticket, int sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      const int first_leaf = warp * Shape::kReduceRows;
      Item values[Shape::kReduceRows];
      const auto take = [&](int row, Item value, int last_slot) {
        if constexpr (!Operator::kAnyOrder) {
          if (LaneOfWarp() == last_slot) s_.last_runs[at.stage][first_leaf + row] = value;
          if (LaneOfWarp() >= last_slot) value = neutral_;
        }
        values[row] = value;
      };
      if (IsWhole(begin)) {
        VisitRuns(s_.items[at.stage] + BytesIntoWord(p_.in) + first_leaf * kLeafItems * sizeof(In),
                  [&](int row, const Element(&elements)[4]) { take(row, RunValue(elements), kJoinSlots - 1); });
      } else {
#pragma unroll
        for (int row = 0; row < Shape::kReduceRows; ++row) {
          const uint64_t leaf_begin = begin + (first_leaf + row) * kLeafItems;
          take(row, PartialRun(leaf_begin + LaneOfWarp() * kRunItems), LastSlot(NumValidFrom(leaf_begin), kRunItems));
        }
      }
      const Item tree = WarpTreeOfRows<Operator>(values);
      if (LaneOfWarp() < Shape::kReduceRows) s_.trees_of_runs[at.stage][first_leaf + LaneOfWarp()] = tree;
      ArriveAsWarp(s_.reduced[at.stage]);
    });
  }

  // Calls visit(row, elements) for each of the warp's leaves in shared memory, with the lane's run.
  template <class Visit>
  static __device__ void VisitRuns(const unsigned char* s_leaves, Visit&& visit) {
    if (BytesIntoWord(s_leaves) != 0) {
      return VisitRowsAnywhere<Element, sizeof(In), Shape::kReduceRows>(s_leaves, /*reverse=*/false, visit);
    }
#pragma unroll
    for (int row = 0; row < Shape::kReduceRows; ++row) {
      Element elements[4];
      LoadRun(reinterpret_cast<const Element*>(s_leaves) + 4 * (row * kWarpThreads + LaneOfWarp()), elements);
      visit(row, elements);
    }
  }

  static __device__ Item RunValue(const Element (&elements)[4]) {
    if constexpr (kIsPacked) {
      return PackedValue<kOp, In, Out>(elements);
    } else {
      Item value = Operator::Load(elements[0]);
#pragma unroll
      for (int i = 1; i < kRunItems; ++i) value = Operator::Combine(value, Operator::Load(elements[i]));
      return value;
    }
  }

  __device__ Item PartialRun(uint64_t first_item) const {
    Item value = neutral_;
    for (int i = 0; i < kRunItems && first_item + i < p_.num_items; ++i) {
      const Item item = Operator::Load(p_.in[first_item + i]);
      value = i == 0 ? item : Operator::Combine(value, item);
    }
    return value;
  }

  // ---- Publish ----
  __device__ void Publish() {
    ForEachTicket<Shape>(s_.ring, [&](Position& at, uint32_t ticket) {
      for (int t = 0; t < kTicketStates; ++t) {
        const int leaf = t * kJoinSlots + LaneOfWarp();
        s_.reduced[at.stage].Wait(at.parity);
        __syncwarp();
        Item leaf_value = s_.trees_of_runs[at.stage][leaf];
        if constexpr (Operator::kAnyOrder) {
#pragma unroll
          for (int tile = 1; tile < Shape::kTicketTiles; ++tile) {
            leaf_value = Operator::Combine(leaf_value, s_.trees_of_runs[at.stage][tile * kJoinSlots + leaf]);
          }
        } else {
          leaf_value = Operator::Combine(leaf_value, s_.last_runs[at.stage][leaf]);
        }
        __syncwarp();
        if (t == kTicketStates - 1) ArriveAsWarp(s_.ring.freed[at.stage]);
        const uint32_t state = ticket * kTicketStates + t;
        Item value;
        if constexpr (Operator::kAnyOrder) {
          value = WarpTotal<Operator>(leaf_value);
        } else {
          const int last_leaf = LastSlot(NumValidFrom(uint64_t{state} * kTileItems), kLeafItems);
          value = WarpJoin<Operator>(leaf_value, neutral_, last_leaf);
        }
        if (LaneOfWarp() == 0) p_.states.Publish(state, epoch_, value);
      }
      at.Next();
    });
  }

  // ---- Follow ----
  __device__ void Follow(int warp) {
    constexpr uint32_t kThreads = Shape::kFollowWarps * kWarpThreads;
    const uint32_t t = warp * kWarpThreads + LaneOfWarp();
    const auto sync = [] { SyncTeam<1, kThreads>(); };
    const ReduceState start = p_.state_in != nullptr ? *p_.state_in : p_.init;
    GroupFold<Operator, Shape::kFollowWarps> fold(p_.states, epoch_, FoldStart<kOp>(p_, start), neutral_, warp,
                                                  s_.fold);
    const auto num_states = static_cast<uint32_t>((p_.num_items - 1) / kStateItems + 1);
    BestTile<kOp, Out> best;
    const Item value = fold.WaitForAll(num_states, sync, best);
    FinishReduce<kOp, kStateItems>(
        p_, p_.in, start, value, p_.state_out, t, kThreads, &s_.first,
        [&] { return best.First(value, t == 0, &s_.first, sync) * kStateItems; }, sync);
    if (t == 0) p_.states.Leave();
  }

  const ReduceParams<In, Out>& p_;
  Shared& s_;
  const Item neutral_;
  const uint32_t epoch_;
};

// p.num_tiles: the number of tickets. Threads, shared memory: RingReduceShape, RingReduceShared. Needs: num_items > 0.
template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(RingReduceShape<In>::kThreads, 1)
    RingReduceKernel(const __grid_constant__ ReduceParams<In, Out> p) {
#ifdef PREFIXD_HAS_BULK_COPY
  extern __shared__ __align__(128) std::byte s_memory[];
  RingReduce<In, Out, kOp>(p, *reinterpret_cast<typename RingReduce<In, Out, kOp>::Shared*>(s_memory)).Run();
#endif
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_REDUCE_CUH_
