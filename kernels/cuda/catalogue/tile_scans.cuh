// Every tile scan by its name.
#ifndef PREFIXD_KERNELS_CUDA_CATALOGUE_TILE_SCANS_CUH_
#define PREFIXD_KERNELS_CUDA_CATALOGUE_TILE_SCANS_CUH_

#include "kernels/cuda/catalogue/blelloch.cuh"
#include "kernels/cuda/catalogue/brent_kung.cuh"
#include "kernels/cuda/catalogue/hillis_steele.cuh"
#include "kernels/cuda/catalogue/kogge_stone.cuh"
#include "kernels/cuda/catalogue/warp_shared.cuh"
#include "kernels/cuda/catalogue/warp_shuffle.cuh"

namespace prefixd::cuda {

// Calls f(TypeTag<Scan>{}) for the tile scan with the operator on T; the device's own choice is warp_shuffle.
template <class T, class F>
cudaError_t VisitTileScan(TileScan tile_scan, Op op, F&& f) {
  return VisitCatalogueOp(op, [&](auto tag) {
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
    return cudaErrorInvalidValue;
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_CATALOGUE_TILE_SCANS_CUH_
