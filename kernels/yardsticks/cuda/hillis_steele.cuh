// Tile scan "hillis_steele": in step k every item combines with the item 2^k before it, from one copy of the tile to
// another.
//
// Cost: work n log b, depth log b, for tiles of b = 512 items (of 8 bytes: 256). One barrier a step, because no step
// writes what it reads; the price is a second tile of shared memory.
// Banks: no conflicts (ncu: 0.4 %): neighbouring threads read and write neighbouring items.
// Source: Hillis and Steele 1986; Hadwiger (the "first attempt"); Iriscores (Steel_Optimized); Note and
// Save. Iriscores scans ints in a float array, wrong above 2^24, has no guard for the last block, and works in place
// after all, with two barriers a step. Hadwiger moves the items up by one as it loads them, for an exclusive scan: the
// value of the whole is lost then.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_HILLIS_STEELE_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_HILLIS_STEELE_CUH_

#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

template <class Op>
struct HillisSteele {
  using Operator = Op;
  using Item = typename Op::Item;
  static constexpr int kItemsPerThread = 1;
  static constexpr bool kMakesExclusive = false;
  static constexpr int ScratchItems(int tile_items) { return tile_items; }

  static __device__ Item Run(SharedTile<Item>& tile, bool /*exclusive*/, Item /*neutral*/) {
    const int t = static_cast<int>(threadIdx.x);
    SharedTile<Item> from = tile;
    SharedTile<Item> to(tile.scratch(), tile.size(), /*padded=*/false);
    for (int distance = 1; distance < kTileThreads<Item>; distance *= 2) {
      to[t] = t >= distance ? Op::Combine(from[t - distance], from[t]) : from[t];
      __syncthreads();
      const SharedTile<Item> written = to;
      to = from;
      from = written;
    }
    tile = from;
    return tile[kTileThreads<Item> - 1];
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_HILLIS_STEELE_CUH_
