// Tile scan "blelloch": two items a thread. Sums go up a tree, and what stands before each item comes down the tree.
//
// The exclusive form sets the root to the identity. Then every node hands its prefix to its left child, and its prefix
// with the left child's sum to its right child. The inclusive form goes down as brent_kung does.
// Cost: work 2n (the exclusive form also makes a move for each addition), depth 2 log b, for tiles of b = 1,024 items
// (of 8 bytes: 512); a barrier a step, and one at the root.
// Banks: items come from the two halves of the tile, so loads meet no bank twice. The tree is brent_kung's with two
// items a thread: by ncu on an H200, three_phase, 2^20 f32, it takes 4.2 times the accesses it asks for, padded 1.3.
// Source: Blelloch 1990; Harris, Sengupta and Owens 2007; Hadwiger; Note and Save. Note and Save adds left + prefix,
// which is right only if the operator commutes; Hadwiger's inclusive form has a "first element adds zero", which is no
// step at all; neither saves the value of the whole before it overwrites the root.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_BLELLOCH_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_BLELLOCH_CUH_

#include "kernels/yardsticks/cuda/brent_kung.cuh"
#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

template <class Op>
struct Blelloch {
  using Operator = Op;
  using Item = typename Op::Item;
  static constexpr int kItemsPerThread = 2;
  static constexpr bool kMakesExclusive = true;
  static constexpr int ScratchItems(int /*tile_items*/) { return 0; }

  static __device__ Item Run(SharedTile<Item>& tile, bool exclusive, Item neutral) {
    const int t = static_cast<int>(threadIdx.x);
    const int root = tile.size() - 1;
    UpSweep<Op>(tile);
    const Item value = tile[root];
    if (!exclusive) {
      InclusiveDownSweep<Op>(tile);
      return value;
    }
    __syncthreads();
    if (t == 0) tile[root] = neutral;  // Thread 0 is also the only thread of the first step.
    for (int distance = tile.size() / 2; distance > 0; distance /= 2) {
      if (const int right = 2 * distance * (t + 1) - 1; right <= root) {
        const Item left_sum = tile[right - distance];
        tile[right - distance] = tile[right];
        tile[right] = Op::Combine(tile[right], left_sum);
      }
      __syncthreads();
    }
    return value;
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_BLELLOCH_CUH_
