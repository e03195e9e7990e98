// Tile scan "brent_kung": sums go up a tree, and prefixes come down the same tree. A thread has any number of items.
//
// Up, with distance d = 1, 2, 4, ..: items 2d - 1, 4d - 1, .. take in the item d before, and then hold the value of 2d
// items. Down, with d halving: these items hold the value of all items up to them, and the item d after takes that in.
// Cost: work 2n, depth 2 log b, for tiles of b = 512 items (of 8 bytes: 256) times the number of items of a thread; a
// barrier a step.
// Banks: step d is a 2d-way conflict, 32-way from d = 16 on. By ncu on an H200 (three_phase, 2^20 f32) a tile
// takes 3.9, 4.5, 4.7 times the accesses to shared memory that it asks for, with 1, 4, 16 items a thread; padded 1.3
// times, since the deep steps, of few threads, still have some. Source: Brent and Kung 1982; Funktor; Hadwiger.
// Funktor takes a parameter A and reads arr, calls the depth nearly O(1), and has 255 words of padding, enough for
// 8,192 items and no more. Hadwiger pads every 16 words, for the banks of 2007, lets one thread too many work
// (thid <= d), and adds shared[b] onto shared[a], where no later step looks.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_BRENT_KUNG_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_BRENT_KUNG_CUH_

#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

// Item j of the tile, (j + 1) divisible by 2^k, becomes the value of the 2^k items up to it.
template <class Op, class Item>
__device__ void UpSweep(const SharedTile<Item>& tile) {
  const int t = static_cast<int>(threadIdx.x);
  for (int distance = 1; distance < tile.size(); distance *= 2) {
    for (int j = 2 * distance * (t + 1) - 1; j < tile.size(); j += 2 * distance * kTileThreads<Item>) {
      tile[j] = Op::Combine(tile[j - distance], tile[j]);
    }
    __syncthreads();
  }
}

// After UpSweep: every item becomes the value of all items up to it.
template <class Op, class Item>
__device__ void InclusiveDownSweep(const SharedTile<Item>& tile) {
  const int t = static_cast<int>(threadIdx.x);
  int distance = 1;
  while (4 * distance < tile.size()) distance *= 2;
  for (; distance > 0; distance /= 2) {
    for (int j = 2 * distance * (t + 1) - 1; j + distance < tile.size(); j += 2 * distance * kTileThreads<Item>) {
      tile[j + distance] = Op::Combine(tile[j], tile[j + distance]);
    }
    __syncthreads();
  }
}

template <class Op>
struct BrentKung {
  using Operator = Op;
  using Item = typename Op::Item;
  static constexpr int kItemsPerThread = 1;  // Unless the caller chooses.
  static constexpr bool kMakesExclusive = false;
  static constexpr int ScratchItems(int /*tile_items*/) { return 0; }

  static __device__ Item Run(SharedTile<Item>& tile, bool /*exclusive*/, Item /*neutral*/) {
    UpSweep<Op>(tile);
    InclusiveDownSweep<Op>(tile);
    return tile[tile.size() - 1];
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_BRENT_KUNG_CUH_
