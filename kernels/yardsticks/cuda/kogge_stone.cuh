// Tile scan "kogge_stone": the steps of hillis_steele in one copy of the tile, through a register.
//
// Cost: work n log b, depth log b, for tiles of b = 512 items (of 8 bytes: 256). Two barriers a step: between the last
// read of an item and its write, and between the write and the next read.
// Banks: no conflicts (ncu: 0.6 %): neighbouring threads read and write neighbouring items.
// Source: Kogge and Stone 1973; Funktor, whose first version writes P[threadIdx.x], so that every block scans the first
// block's items; what it does about that, a counter that all threads of the grid spin on, is grid_sync.cu.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_KOGGE_STONE_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_KOGGE_STONE_CUH_

#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

template <class Op>
struct KoggeStone {
  using Operator = Op;
  using Item = typename Op::Item;
  static constexpr int kItemsPerThread = 1;
  static constexpr bool kMakesExclusive = false;
  static constexpr int ScratchItems(int /*tile_items*/) { return 0; }

  static __device__ Item Run(SharedTile<Item>& tile, bool /*exclusive*/, Item /*neutral*/) {
    const int t = static_cast<int>(threadIdx.x);
    for (int distance = 1; distance < kTileThreads<Item>; distance *= 2) {
      Item item = tile[t];
      if (t >= distance) item = Op::Combine(tile[t - distance], item);
      __syncthreads();
      tile[t] = item;
      __syncthreads();
    }
    return tile[kTileThreads<Item> - 1];
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_KOGGE_STONE_CUH_
