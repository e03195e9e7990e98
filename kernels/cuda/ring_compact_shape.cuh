// The sizes of the ring compact (ring_compact.cuh) for each size of elements, and which of its warps have which role.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_compact_narrow.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

// Whether lanes work on whole words of items (ring_compact_narrow.cuh).
template <class T, bool kIndices>
inline constexpr bool kHasNarrowRunsOf = sizeof(T) < 4 && !kIndices;

// The stages of elements of kItemBytes, and the masks of stages: a mask is needed only until its elements are selected,
// so there are fewer. A stage has 32 rows at most, so that narrow elements have more and smaller ones.
template <int kItemBytes, bool kHasByteMask, bool kHasNarrowRuns>
struct RingCompactSizes {
  static constexpr int kStageBytes = kItemBytes >= 4 ? 16 * 1024 : 4096 * kItemBytes;
  static constexpr int kStages = kItemBytes >= 4   ? 9 - kHasByteMask
                                 : kItemBytes == 2 ? 16 - 4 * kHasByteMask
                                                   : 24 - 6 * kHasByteMask;
  static constexpr int kMasks = kItemBytes >= 4 ? 6 : kItemBytes == 2 ? 10 : 12;
};

// With narrow runs. Many rows share what a warp does once for a stage, but a byte mask leaves less room.
template <int kItemBytes, bool kHasByteMask>
struct RingCompactSizes<kItemBytes, kHasByteMask, true> {
  static constexpr int kStageBytes = (kHasByteMask ? 8 : 16) * 1024;
  static constexpr int kStages = !kHasByteMask ? 8 : kItemBytes == 2 ? 12 : 11;
  static constexpr int kMasks = !kHasByteMask ? 6 : kItemBytes == 2 ? 10 : 7;
};

// kIndices: whether indices are wanted, beside the values or without them.
template <class T, Selector kSelector, bool kIndices,
          class Sizes = RingCompactSizes<sizeof(T), kSelector == Selector::kByteMask, kHasNarrowRunsOf<T, kIndices>>>
struct RingCompactShape : RingShape<T, Sizes::kStages, Sizes::kStageBytes> {
  using Base = RingShape<T, Sizes::kStages, Sizes::kStageBytes>;
  static constexpr bool kHasMask = kSelector != Selector::kPredicate;
  static constexpr int kMaskByteItems = kSelector == Selector::kBitMask ? 8 : 1;
  static constexpr int kMaskBytes = kHasMask ? Base::kStageItems / kMaskByteItems : 0;  // A stage's.
  static constexpr int kMasks = Sizes::kMasks;
  static constexpr bool kHasNarrowRuns = kHasNarrowRunsOf<T, kIndices>;
  static constexpr int kRunItems = kHasNarrowRuns ? kRunBytes / static_cast<int>(sizeof(T)) : 4;
  static constexpr int kRowRuns = kHasNarrowRuns ? 2 : 1;  // A lane's.
  static constexpr int kLaneItems = kRowRuns * kRunItems;  // A lane's of a row.
  static constexpr int kRowItems = kLaneItems * kWarpThreads;
  static constexpr int kRows = Base::kStageItems / kRowItems;

  static constexpr int kSelectWarps = 8;
  static constexpr int kGatherWarps = 8;
  static constexpr int kWarpRows = kRows / 8;  // For select and gather alike.
  static_assert(kWarpRows * kSelectWarps == kRows && kWarpRows * kGatherWarps == kRows);
  static constexpr int kCountBits = kHasNarrowRuns ? 32 / kWarpRows : 8;  // A row's count, in a word for all.
  static_assert(kRows <= kWarpThreads && kWarpRows * kCountBits <= 32, "a lane a row; a word for all rows of a warp");
  static_assert(uint64_t{kRowItems} >> kCountBits == 0, "no carry from row to row");
  static constexpr int kStoreWarps = kIndices || kHasNarrowRuns ? 4 : 2;
  // Warps by role.
  static constexpr int kPublishWarp = kSelectWarps + kGatherWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  static constexpr int kLoadWarp = kLookBackWarp + 1;
  static constexpr int kStoreWarp = kLoadWarp + 1;
  static constexpr int kThreads = (kStoreWarp + kStoreWarps) * kWarpThreads;

  using KeptBits =
      std::conditional_t<(kLaneItems > 16), uint32_t, std::conditional_t<(kLaneItems > 8), uint16_t, uint8_t>>;
  using RowCount = std::conditional_t<(kRowItems > 255), uint16_t, uint8_t>;

  // The queue holds kQueueItems items, a power of two, and at most kQueueStages stages, however few items they keep.
  // Where indices are wanted, they share its memory.
  static constexpr uint32_t kQueueItems =
      kIndices ? std::min<uint32_t>(32 * 1024 / sizeof(T), 16 * 1024) : 64 * 1024 / sizeof(T);
  static constexpr uint32_t kQueueMargin = kHasNarrowRuns ? kLaneItems : 0;  // Items behind the queue.
  static constexpr int kQueueTickets = 8;
  static constexpr int kQueueStages = kQueueTickets * Base::kTicketStages;
  static_assert((kQueueItems & (kQueueItems - 1)) == 0 && kQueueItems >= Base::kStageItems);
  static_assert(kQueueStages % kStoreWarps == 0);

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

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_
