// The sizes of the ring scan (ring_scan.cuh) for each pair of types, and which of its warps have which role.
#ifndef PREFIXD_KERNELS_CUDA_RING_SCAN_SHAPE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_SCAN_SHAPE_CUH_

#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/log_add_exp.h"
#include "kernels/types.h"

namespace prefixd::cuda {

// The sizes of a stage and a ticket, from Tiles, and how many warps have the roles.
//   kNumLookBackWarps   each reads a group at a time
//   kStageArrays        a stage has elements of so many arrays
//   kNumTeams           the warps that scan are in so many teams, which take the stages in turn
template <class Tiles, int kNumScanWarps, int kNumLookBackWarps, int kStageArrays = 1, int kNumReduceWarps = 4,
          int kNumTeams = 1>
struct RingScanShape : Tiles {
  static constexpr int kTeams = kNumTeams;
  static constexpr int kReduceWarps = kNumReduceWarps;
  static constexpr int kScanWarps = kNumScanWarps;
  static constexpr int kReduceRows = Tiles::kStageLeaves / kReduceWarps;
  static constexpr int kScanRows = Tiles::kStageLeaves * kTeams / kScanWarps;
  // Warps by role.
  static constexpr int kPublishWarp = kReduceWarps + kScanWarps;
  static constexpr int kLookBackWarp = kPublishWarp + 1;
  static constexpr int kLookBackWarps = kNumLookBackWarps;
  static constexpr int kLoadWarp = kLookBackWarp + kLookBackWarps;
  static constexpr int kThreads = (kLoadWarp + 1) * kWarpThreads;

  static constexpr int kPacedLoads = 48 * 1024 / (Tiles::kStageBytes * kStageArrays);
};

template <class Item>
inline constexpr bool kIsScaled = false;
template <class T>
inline constexpr bool kIsScaled<Scaled<T>> = true;

// The shape for one array in, and one out. A run has RingRunItems items. Where results have the type of the elements, a
// stage is 16 KiB, and there are kStages. Where results are wider, a stage is whole tiles and the ring is shorter,
// since writing the results takes most of the time.
//
// For every ticket, the warps that look back read the groups that were published since the last one: on 132
// multiprocessors 4 for each tile of a ticket, where the order is not free. How many are best is by measurement
// (docs/decisions/single_pass_ring.md): of f32 as many as there are groups, of f16, which has 16, half, and of wide
// sums two more, whose values take longer to join. Scaled items keep all warps busy that registers suffice for.
//
// Teams hide what the warps of one stage wait for: three of four warps, which have four rows each, for doubles by min
// and max, and two of eight for f32 that begins anywhere (kAnywhere), whose results are shifted. Elsewhere they take
// registers that are not there, or gain nothing.
template <class Operator, class In, class Out, bool kAnywhere = false>
struct RingScanShapeOf {
  using Item = typename Operator::Item;
  static constexpr int kStages =
      sizeof(In) < 4 && sizeof(Item) > 4 ? 12 : 13;  // As many as shared memory has room for.
  using Tiles =
      std::conditional_t<std::is_same_v<In, Out>,
                         RingTileShape<RingShape<In, kStages>, RingRunItems<In, Operator::kAnyOrder>()>,
                         std::conditional_t<sizeof(In) == 4, RingTileShape<RingShape<In, 10, kTileItems * sizeof(In)>>,
                                            RingTileShape<RingShape<In, 10, 2 * kTileItems * sizeof(In), 1>>>>;
  static constexpr bool kLooksLonger = !Operator::kAnyOrder && (sizeof(In) < 4 || sizeof(Item) > sizeof(In));
  static constexpr int kLookBackWarps = sizeof(Out) == 8                          ? 6
                                        : kLooksLonger                            ? 10
                                        : Operator::kAnyOrder && sizeof(Out) == 1 ? 4
                                                                                  : 8;
  static constexpr int kTeams =
      std::is_same_v<Out, double> && Operator::kAnyOrder && !kAnywhere                                ? 3
      : std::is_same_v<In, float> && std::is_same_v<Item, float> && !Operator::kAnyOrder && kAnywhere ? 2
                                                                                                      : 1;
  static constexpr int kScanWarps = kTeams == 3 ? 12 : 8 * kTeams;
  using Type = std::conditional_t<kIsScaled<Item>, RingScanShape<Tiles, 16, 4, 1, 8>,
                                  RingScanShape<Tiles, kScanWarps, kLookBackWarps, 1, 4, kTeams>>;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_SCAN_SHAPE_CUH_
