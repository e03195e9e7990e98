// Scan, strategy "chained": which of the kernels run. All give the bits of kernels/NUMERICS.md, in one launch, but of
// segments, and of few long columns, in up to three, and of long rows in one for each.
#ifndef PREFIXD_KERNELS_CUDA_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_SCAN_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/column_scan.cuh"
#include "kernels/cuda/column_tiles.cuh"
#include "kernels/cuda/direct_scan.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/range_scan.cuh"
#include "kernels/cuda/ring_anywhere.cuh"
#include "kernels/cuda/ring_scan.cuh"
#include "kernels/cuda/row_scan.cuh"
#include "kernels/cuda/segment_scan.cuh"
#include "kernels/cuda/tile_scan.cuh"

namespace prefixd::cuda {

template <class In, class Out>
bool DirectScanServes(const ScanParams<In, Out>& params) {
  return params.aligned && !params.reverse && static_cast<const void*>(params.in) != params.out &&
         params.carry_in == nullptr && params.num_items <= uint64_t{kDirectScanTiles} * kTileItems;
}

// Arrays of which each would take a block too long, or too short a time.
inline bool SegmentScanServes(const ScanArgs& args) {
  return args.offsets != nullptr ||
         (args.num_arrays > 1 && (args.num_items > kBlockScanItems || args.num_arrays >= kMinScanRows));
}

template <class In, class Out, Op kOp>
cudaError_t LaunchSegmentScanOf(const ScanArgs& args, LaunchContext* context) {
  if (args.num_items == 0) return cudaSuccess;
  SegmentScanParams<In, Out> params = SegmentScanParamsOf<In, Out, kOp>(args);
  if constexpr (std::is_same_v<In, Out> && HasRangeScan(kOp)) {
    if (RangesScan(args)) return LaunchRangeScan<In, kOp>(params, context);
  }
  return LaunchSegmentScan<In, Out, kOp>(args, params, context);
}

// Without the ring, from here on blocks that share an array by ranges are faster than those that take it tile by tile.
// They know of no carries.
inline constexpr uint64_t kRangesScanMinBytes = uint64_t{1} << 20;

template <class In, class Out, Op kOp>
cudaError_t LaunchScanOf(const ScanArgs& args, LaunchContext* context) {
  if (args.num_arrays > 1 && args.order == BatchOrder::kInterleaved) {
    return AreColumnTiles(args) ? LaunchColumnTiles<In, Out, kOp>(args, context)
                                : LaunchColumnScan<In, Out, kOp>(args, context);
  }
  if (AreLongRows(args, *context)) {
    return ForRows(args, [&](const ScanArgs& row) { return LaunchScanOf<In, Out, kOp>(row, context); });
  }
  if (RowScanServes(args)) return LaunchRowScan<In, Out, kOp>(args, context);
  if (SegmentScanServes(args)) return LaunchSegmentScanOf<In, Out, kOp>(args, context);
  ScanParams<In, Out> params = ScanParamsOf<In, Out, kOp>(args, *context);
  if (args.num_arrays > 1 || args.num_items <= kBlockScanItems) {
    return LaunchBlockScan<In, Out, kOp>(args, params, context);
  }
  if (!DirectScanServes(params)) {
    using Aligned = RingElements<kOp, In, Out>;
    using Anywhere = RingElementsAnywhere<kOp, In, Out>;
    if (RingScanServes<Aligned>(params, *context)) return LaunchRingScan<Aligned>(params, context);
    if (RingScanServes<Anywhere>(params, *context)) {
      Anywhere::AlignResults(&params);
      return LaunchRingScan<Anywhere>(params, context);
    }
    const bool has_carry = args.carry_in != nullptr || args.carry_out != nullptr;
    if (has_carry || args.num_items * sizeof(Out) < kRangesScanMinBytes) {
      return LaunchTileScan<In, Out, kOp>(params, context);
    }
    return LaunchSegmentScanOf<In, Out, kOp>(args, context);
  }
  const cudaError_t error =
      PrepareTickets<typename Operator<kOp, Out>::Item>(kTileItems, /*ticket_states=*/1, context, &params);
  if (error != cudaSuccess) return error;
  return params.num_tiles <= kDirectScanBlocks
             ? Launch(DirectScanKernel<In, Out, kOp, 1>, params.num_tiles, TileShape::kThreads, context->stream, params)
             : Launch(DirectScanKernel<In, Out, kOp, 2>, (params.num_tiles + 1) / 2, TileShape::kThreads,
                      context->stream, params);
}

template <class In, class Out>
cudaError_t LaunchScan(const ScanArgs& args, LaunchContext* context) {
  if constexpr (!std::is_same_v<In, Out>) {
    return LaunchScanOf<In, Out, Op::kSum>(args, context);
  } else {
    return VisitOp<Out>(args.op, [&](auto tag) {
      constexpr Op kOp = decltype(tag)::kValue;
      using T = WrappingType<Out, kOp>;
      return LaunchScanOf<T, T, kOp>(args, context);
    });
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SCAN_CUH_
