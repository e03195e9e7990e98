// Tile scan "warp_shuffle": a warp scans 32 items in registers; in step k every lane combines with the lane 2^k before.
//
// Cost: work n log 32, depth 2 log 32, for tiles of 512 items (of 8 bytes: 256); three barriers a tile.
// Banks: no conflicts; shared memory holds the tile between load, scan and store, and the warps' values.
// Source: Note and Save, which shuffles only to reduce. It says that no barrier is needed because a warp runs in
// lockstep (since Volta it doesn't; __shfl_up_sync is the barrier), and that the offset must be a power of two: any
// will do.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_SHUFFLE_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_SHUFFLE_CUH_

#include "kernels/yardsticks/cuda/shared_tile.cuh"
#include "kernels/yardsticks/cuda/warp_tiles.cuh"

namespace prefixd::cuda {

template <class Op>
struct WarpShuffle {
  using Operator = Op;
  using Item = typename Op::Item;
  static constexpr int kItemsPerThread = 1;
  static constexpr bool kMakesExclusive = false;
  static constexpr int ScratchItems(int /*tile_items*/) { return kTileWarps<Item>; }

  static __device__ Item Run(SharedTile<Item>& tile, bool /*exclusive*/, Item neutral) {
    return ScanByWarps<Op>(tile, neutral, tile.scratch(), [](Item item) {
      for (int distance = 1; distance < kWarpThreads; distance *= 2) {
        const Item before = __shfl_up_sync(kAllLanes, item, distance);
        if (LaneOfWarp() >= distance) item = Op::Combine(before, item);
      }
      return item;
    });
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_SHUFFLE_CUH_
