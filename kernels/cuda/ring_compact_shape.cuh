// The sizes of the ring compact (ring_compact.cuh) for each size of elements, and which of its warps have which role.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

// The stages of elements of kItemBytes, and the masks of stages: a mask is needed only until its elements are selected,
// so there are fewer. A stage has 32 rows at most, so that narrow elements have more and smaller ones.
template <int kItemBytes, bool kHasMask>
struct RingCompactSizes {
  static constexpr int kStageBytes = kItemBytes >= 4 ? 16 * 1024 : 4096 * kItemBytes;
  static constexpr int kStages = kItemBytes >= 4   ? 9 - kHasMask
                                 : kItemBytes == 2 ? 16 - 4 * kHasMask
                                                   : 24 - 6 * kHasMask;
  static constexpr int kMasks = kItemBytes >= 4 ? 6 : kItemBytes == 2 ? 10 : 12;
};

// kIndices: whether indices are wanted, beside the values or without them.
template <class T, Selector kSelector, bool kIndices,
          class Sizes = RingCompactSizes<sizeof(T), kSelector == Selector::kByteMask>>
struct RingCompactShape : RingShape<T, Sizes::kStages, Sizes::kStageBytes> {
  using Base = RingShape<T, Sizes::kStages, Sizes::kStageBytes>;
  static constexpr bool kHasMask = kSelector != Selector::kPredicate;
  static constexpr int kMaskByteItems = kSelector == Selector::kBitMask ? 8 : 1;
  static constexpr int kMaskBytes = kHasMask ? Base::kStageItems / kMaskByteItems : 0;  // A stage's.
  static constexpr int kMasks = Sizes::kMasks;
  static constexpr int kRowItems = 4 * kWarpThreads;
  static constexpr int kRows = Base::kStageItems / kRowItems;

  static constexpr int kSelectWarps = 8;
  static constexpr int kGatherWarps = 8;
  static constexpr int kWarpRows = kRows / 8;  // For select and gather alike.
  static_assert(kWarpRows * kSelectWarps == kRows && kWarpRows * kGatherWarps == kRows);
  static_assert(kRows <= kWarpThreads && kWarpRows <= 4, "a lane a row; a byte of a word a row");
  static constexpr int kStoreWarps = kIndices ? 4 : 2;
  // Warps by role.
  static constexpr int kPublishWarp = kSelectWarps + kGatherWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  static constexpr int kLoadWarp = kLookBackWarp + 1;
  static constexpr int kStoreWarp = kLoadWarp + 1;
  static constexpr int kThreads = (kStoreWarp + kStoreWarps) * kWarpThreads;

  // The queue holds kQueueItems items, a power of two, and at most kQueueStages stages, however few items they keep.
  // Where indices are wanted, they share its memory.
  static constexpr uint32_t kQueueItems =
      kIndices ? std::min<uint32_t>(32 * 1024 / sizeof(T), 16 * 1024) : 64 * 1024 / sizeof(T);
  static constexpr int kQueueTickets = 8;
  static constexpr int kQueueStages = kQueueTickets * Base::kTicketStages;
  static_assert((kQueueItems & (kQueueItems - 1)) == 0 && kQueueItems >= Base::kStageItems);
  static_assert(kQueueStages % kStoreWarps == 0);

  static constexpr int kPacedLoads = 48 * 1024 / Base::kStageBytes;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_SHAPE_CUH_
