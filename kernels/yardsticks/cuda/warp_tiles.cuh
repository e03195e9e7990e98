// The common part of the tile scans by warps: every warp scans 32 items, then the first warp scans the warps' values.
// The texts that teach this leave out the second part (Ruan: "a separate story"). Three barriers a tile, whatever its
// size.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_TILES_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_TILES_CUH_

#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

// scan_warp(item): the inclusive scan of the warp's items, by all its lanes. s_warps: kTileWarps<Item> items.
template <class Op, class Item, class ScanWarp>
__device__ Item ScanByWarps(const SharedTile<Item>& tile, Item neutral, Item* s_warps, ScanWarp&& scan_warp) {
  static_assert(kTileWarps<Item> <= kWarpThreads);
  const int t = static_cast<int>(threadIdx.x);
  Item item = scan_warp(tile[t]);
  if (LaneOfWarp() == kWarpThreads - 1) s_warps[WarpOfBlock()] = item;
  __syncthreads();
  if (WarpOfBlock() == 0) {
    const Item value = scan_warp(LaneOfWarp() < kTileWarps<Item> ? s_warps[LaneOfWarp()] : neutral);
    if (LaneOfWarp() < kTileWarps<Item>) s_warps[LaneOfWarp()] = value;
  }
  __syncthreads();
  if (WarpOfBlock() > 0) item = Op::Combine(s_warps[WarpOfBlock() - 1], item);
  tile[t] = item;
  __syncthreads();
  return tile[kTileThreads<Item> - 1];
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_TILES_CUH_
