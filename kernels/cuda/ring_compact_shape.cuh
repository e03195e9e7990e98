// The sizes of the ring compact (ring_compact.cuh) for each size of elements, which of its warps have which role, and
// its shared memory.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_compact_narrow.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

// The stages of elements of kItemBytes, the masks of stages, and the queue: a power of two. A mask is needed only until
// its elements are selected, so there are fewer. Elements of 1 byte have narrow runs (ring_compact_narrow.cuh), and
// those of 2 bytes where no indices are wanted.
template <int kItemBytes, bool kHasByteMask, bool kIndices>
struct RingCompactSizes {
  static constexpr bool kHasNarrowRuns = false;
  static constexpr int kStageBytes = 16 * 1024;
  static constexpr int kStages = kHasByteMask || (kIndices && kItemBytes == 8) ? 8 : 9;
  static constexpr int kMasks = 6;
  static constexpr uint32_t kQueueItems = (kIndices && kItemBytes == 4 ? 32 : 64) * 1024 / kItemBytes;
};

// Many rows share what a warp does once for a stage, but a byte mask, or indices, leave less room.
template <bool kHasByteMask, bool kIndices>
struct RingCompactSizes<2, kHasByteMask, kIndices> {
  static constexpr bool kHasNarrowRuns = !kIndices;
  static constexpr int kStageBytes = (kHasByteMask || kIndices ? 8 : 16) * 1024;
  static constexpr int kStages = kHasByteMask ? 12 : kIndices ? 16 : 8;
  static constexpr int kMasks = kHasByteMask || kIndices ? 10 : 6;
  static constexpr uint32_t kQueueItems = (kIndices ? 16 : 32) * 1024;
};
template <bool kHasByteMask, bool kIndices>
struct RingCompactSizes<1, kHasByteMask, kIndices> {
  static constexpr bool kHasNarrowRuns = true;
  static constexpr int kStageBytes = (kHasByteMask || kIndices ? 8 : 16) * 1024;
  static constexpr int kStages = kHasByteMask ? (kIndices ? 8 : 10) : kIndices ? 12 : 8;
  static constexpr int kMasks = kHasByteMask ? (kIndices ? 5 : 8) : kIndices ? 10 : 6;
  static constexpr uint32_t kQueueItems = (kIndices ? 32 : 64) * 1024;
};

// kIndices: whether indices are wanted, beside the values or without them.
template <class T, Selector kSelector, bool kIndices,
          class Sizes = RingCompactSizes<sizeof(T), kSelector == Selector::kByteMask, kIndices>>
struct RingCompactShape : RingShape<T, Sizes::kStages, Sizes::kStageBytes> {
  using Base = RingShape<T, Sizes::kStages, Sizes::kStageBytes>;
  static constexpr bool kHasMask = kSelector != Selector::kPredicate;
  static constexpr int kMaskByteItems = kSelector == Selector::kBitMask ? 8 : 1;
  static constexpr int kMaskBytes = kHasMask ? Base::kStageItems / kMaskByteItems : 0;  // A stage's.
  static constexpr int kMasks = Sizes::kMasks;
  static constexpr bool kHasNarrowRuns = Sizes::kHasNarrowRuns;
  static constexpr int kRunItems = kHasNarrowRuns ? kRunBytes / static_cast<int>(sizeof(T)) : 4;
  static constexpr int kRowRuns = kHasNarrowRuns ? 2 : 1;  // A lane's.
  static constexpr int kLaneItems = kRowRuns * kRunItems;  // A lane's of a row.
  static constexpr int kRowItems = kLaneItems * kWarpThreads;
  static constexpr int kRows = Base::kStageItems / kRowItems;

  static constexpr int kSelectWarps = 8;
  // Narrow runs without indices have two teams of gather warps, which take the stages in turn: one is slower than
  // memory.
  static constexpr int kTeams = kHasNarrowRuns && !kIndices ? 2 : 1;
  static constexpr int kTeamWarps = 8;
  static constexpr int kGatherWarps = kTeams * kTeamWarps;
  static constexpr int kWarpRows = kRows / 8;  // A warp's of a stage, for select and gather alike.
  static_assert(kWarpRows * kSelectWarps == kRows && kWarpRows * kTeamWarps == kRows);
  static constexpr int kCountBits = kHasNarrowRuns ? 32 / kWarpRows : 8;  // A row's count, in a word for all.
  static_assert(kRows <= kWarpThreads && kWarpRows * kCountBits <= 32, "a lane a row; a word for all rows of a warp");
  static_assert(uint64_t{kRowItems} >> kCountBits == 0, "no carry from row to row");
  static constexpr int kStoreWarps = kIndices || kHasNarrowRuns ? 4 : 2;
  // Warps by role.
  static constexpr int kPublishWarp = kSelectWarps + kGatherWarps;
  static constexpr int kEnterWarp = kPublishWarp + 1;
  static constexpr int kLookBackWarp = kEnterWarp + 1;
  static constexpr int kLoadWarp = kLookBackWarp + 1;
  static constexpr int kStoreWarp = kLoadWarp + 1;
  static constexpr int kThreads = (kStoreWarp + kStoreWarps) * kWarpThreads;

  using KeptBits =
      std::conditional_t<(kLaneItems > 16), uint32_t, std::conditional_t<(kLaneItems > 8), uint16_t, uint8_t>>;
  using RowCount = std::conditional_t<(kRowItems > 255), uint16_t, uint8_t>;

  // The queue holds kQueueItems items, and at most kQueueStages stages, however few items they keep. Where runs are
  // narrow, a lane stores the items of a row without looking where the queue begins again.
  static constexpr uint32_t kQueueItems = Sizes::kQueueItems;
  static constexpr uint32_t kQueueMargin = kHasNarrowRuns ? kLaneItems : 0;  // Items behind the queue.
  static constexpr int kQueueTickets = 8;
  static constexpr int kQueueStages = kQueueTickets * Base::kTicketStages;
  static_assert((kQueueItems & (kQueueItems - 1)) == 0 && kQueueItems >= Base::kStageItems);
  static_assert(kQueueStages % kStoreWarps == 0);
  static_assert(Base::kTicketStages % kTeams == 0, "the ends of the store warps begin with the first team");
  static_assert(Base::kStages % kTeams == 0, "each team has stages of its own");
  static_assert(kThreads <= 1024 && kMasks <= Base::kStages && Base::kStageItems <= 1 << 16);

  static constexpr int kPacedLoads = 48 * 1024 / Base::kStageBytes;

  // Whether the lane visits the second run of a row before the first: lanes 4 to 7 of each 8 do, so that eight lanes
  // together touch every bank once.
  static __device__ bool BeginsWithSecond() { return kRowRuns == 2 && LaneOfWarp() / 4 % 2 == 1; }

  // The first item of the run of a row that the lane visits as number `visit`.
  static __device__ int FirstItem(int row, int visit) {
    const int run = BeginsWithSecond() ? visit ^ 1 : visit;
    return row * kRowItems + kLaneItems * LaneOfWarp() + kRunItems * run;
  }

  // The bits of the lane's items of a row, of which run_bits(first_item) finds those of a run: in the order of visits.
  template <class RunBits>
  static __device__ uint32_t LaneBits(int row, RunBits&& run_bits) {
    uint32_t bits = run_bits(FirstItem(row, 0));
#pragma unroll
    for (int visit = 1; visit < kRowRuns; ++visit) {
      bits |= run_bits(FirstItem(row, visit)) << kRunItems * visit;
    }
    return bits;
  }
  // Those of the run that the lane visits first.
  static __device__ uint32_t FirstVisit(uint32_t kept) { return kept % (1u << kRunItems); }
};

// A block's shared memory.
template <class T, Selector kSelector, bool kIndices>
struct RingCompactShared {
  using Shape = RingCompactShape<T, kSelector, kIndices>;
  static constexpr int kStages = Shape::kStages;

  struct NoSelectors {};
  // The kept elements of a stage, as they lie in the queue.
  struct QueuedStage {
    uint32_t ticket;  // Or RingState::kEnd.
    uint32_t begin;   // Where its first one is in the queue; counts on where the queue begins again.
    uint32_t count;
    uint32_t offset;  // Its first one's rank in the ticket.
  };
  struct QueuedTicket {
    uint64_t slot;  // Where in the result the ticket's first kept element goes.
    uint32_t ticket;
  };

  alignas(128) T items[kStages][Shape::kStageItems];
  alignas(128) T queue[Shape::kQueueItems + Shape::kQueueMargin];
  // The place in its stage of each item in the queue.
  alignas(16) uint16_t places[kIndices ? Shape::kQueueItems + Shape::kQueueMargin : 1];
  alignas(128) unsigned char masks[Shape::kMasks][Shape::kMaskBytes + kBulkAlignment];
  typename Shape::KeptBits kept[kStages][Shape::kRows][kWarpThreads];  // A bit for each of a lane's elements of a row.
  typename Shape::RowCount row_counts[kStages][Shape::kRows];
  QueuedStage stages[Shape::kQueueStages];
  uint16_t row_ranks[Shape::kQueueStages][Shape::kRows];  // The rank in its stage of each row's first kept element.
  QueuedTicket tickets[Shape::kQueueTickets];
  RingState<kStages> ring;
  Barrier selected[kStages];
  Barrier entered[Shape::kQueueStages];
  Barrier gathered[Shape::kQueueStages];
  Barrier stored[Shape::kQueueStages];
  Barrier published[Shape::kQueueTickets];
  Barrier placed[Shape::kQueueTickets];
  std::conditional_t<Shape::kHasNarrowRuns, PackSelectors<sizeof(T)>, NoSelectors> selectors;
  std::conditional_t<Shape::kHasNarrowRuns && kIndices, PackSelectors<sizeof(uint16_t)>, NoSelectors> place_selectors;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_
