// Every tile scan by its name.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_TILE_SCANS_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_TILE_SCANS_CUH_

#include "kernels/yardsticks/cuda/blelloch.cuh"
#include "kernels/yardsticks/cuda/brent_kung.cuh"
#include "kernels/yardsticks/cuda/hillis_steele.cuh"
#include "kernels/yardsticks/cuda/kogge_stone.cuh"
#include "kernels/yardsticks/cuda/warp_shared.cuh"
#include "kernels/yardsticks/cuda/warp_shuffle.cuh"

namespace prefixd::cuda {

// Calls f(TypeTag<Scan>{}) for the tile scan with the operator on T. If no tile scan is named, it is warp_shuffle.
template <class T, class F>
cudaError_t VisitTileScan(TileScan tile_scan, Op op, F&& f) {
  return VisitTextbookOp(op, [&](auto tag) {
    using Operator = Operator<decltype(tag)::kValue, T>;
    switch (tile_scan) {
      case TileScan::kHillisSteele:
        return f(TypeTag<HillisSteele<Operator>>{});
      case TileScan::kKoggeStone:
        return f(TypeTag<KoggeStone<Operator>>{});
      case TileScan::kBrentKung:
        return f(TypeTag<BrentKung<Operator>>{});
      case TileScan::kBlelloch:
        return f(TypeTag<Blelloch<Operator>>{});
      case TileScan::kWarpShared:
        return f(TypeTag<WarpSharedValue<Operator>>{});
      case TileScan::kWarpSharedRegister:
        return f(TypeTag<WarpSharedRegister<Operator>>{});
      case TileScan::kDefault:
      case TileScan::kWarpShuffle:
        return f(TypeTag<WarpShuffle<Operator>>{});
    }
    FatalValue("VisitTileScan", tile_scan);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_TILE_SCANS_CUH_
