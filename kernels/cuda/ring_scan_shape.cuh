// The sizes of the ring scan (ring_scan.cuh) for each pair of types, and which of its warps have which role.
#ifndef PREFIXD_KERNELS_CUDA_RING_SCAN_SHAPE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_SCAN_SHAPE_CUH_

#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/types.h"

namespace prefixd::cuda {

// The sizes of a stage and a ticket, from Tiles, and how many warps have the roles.
//   kLookBackWarps   about as many as groups are published while every other block takes one ticket
//   kStageArrays     a stage has elements of so many arrays
template <class Tiles, int kNumScanWarps, int kNumLookBackWarps, int kStageArrays = 1>
struct RingScanShape : Tiles {
  static constexpr int kReduceWarps = 4;
  static constexpr int kScanWarps = kNumScanWarps;
  static constexpr int kReduceRows = Tiles::kStageLeaves / kReduceWarps;
  static constexpr int kScanRows = Tiles::kStageLeaves / kScanWarps;
  // Warps by role.
  static constexpr int kPublishWarp = kReduceWarps + kScanWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  static constexpr int kLookBackWarps = kNumLookBackWarps;
  static constexpr int kLoadWarp = kLookBackWarp + kLookBackWarps;
  static constexpr int kThreads = (kLoadWarp + 1) * kWarpThreads;

  static constexpr int kPacedLoads = 48 * 1024 / (Tiles::kStageBytes * kStageArrays);
};

// What a stage and a ticket hold, whose elements are combined as Items; all sizes are by measurement. A run has
// RingRunItems items. Where results have the type of the elements, a stage is 16 KiB. Where results are wider, a stage
// is whole tiles and the ring is shorter, since writing the results takes most of the time.
template <class In, class Out, class Item>
struct RingScanTilesOf {
  using Type =
      std::conditional_t<std::is_same_v<In, Out>, RingTileShape<RingShape<In, 13>, RingRunItems<In>()>,
                         std::conditional_t<sizeof(In) == 4, RingTileShape<RingShape<In, 10, kTileItems * sizeof(In)>>,
                                            RingTileShape<RingShape<In, 10, 2 * kTileItems * sizeof(In), 1>>>>;
  static constexpr int kLookBackWarps = sizeof(Out) == 8 ? 6 : 8;
};
// f16 and bf16: a stage is one tile, since where the order is not free each has a prefix of its own.
// The rings and the tickets have the bytes of those of f32, a ticket with results of 16 bits four tiles. So more groups
// are published while every other block takes one.
template <class In, class Out, class Item>
requires kIsNarrowFloat<In>
struct RingScanTilesOf<In, Out, Item> {
  static constexpr bool kWidens = !std::is_same_v<In, Out>;
  static constexpr int kStages = kWidens ? 20 : sizeof(Item) == 4 ? 26 : 24;
  using Type = RingTileShape<RingShape<In, kStages, kTileItems * sizeof(In), kWidens ? 2 : 4>>;
  static constexpr int kLookBackWarps = kWidens ? 8 : 12;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_SCAN_SHAPE_CUH_
