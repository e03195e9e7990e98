// Tile scans "warp_shared" and "warp_shared_register": a warp scans 32 items through 64 words of shared memory. The
// first half is neutral, so no lane has to check whether there is an item so far before its own.
//
// The first form keeps the running value in shared memory, and reads and writes it in every step; the second keeps it
// in a register, and reads one item less.
// Cost: work n log 32, depth 2 log 32, for tiles of 512 items (of 8 bytes: 256); three barriers a tile, and in the
// steps only __syncwarp().
// Banks: no conflicts (ncu: 1 %).
// Source: Ruan, both forms. Ruan relies on the lanes of a warp going in lockstep, and on volatile to bind the compiler.
// Since Volta lanes go on independently, so that each step needs a __syncwarp() after its reads and another after its
// write. These barriers also bind the compiler.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_SHARED_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_SHARED_CUH_

#include "kernels/yardsticks/cuda/shared_tile.cuh"
#include "kernels/yardsticks/cuda/warp_tiles.cuh"

namespace prefixd::cuda {

enum class RunningValue { kShared, kRegister };

template <class Op, RunningValue kWhere>
struct WarpShared {
  using Operator = Op;
  using Item = typename Op::Item;
  static constexpr int kItemsPerThread = 1;
  static constexpr bool kMakesExclusive = false;
  static constexpr int ScratchItems(int tile_items) { return kTileWarps<Item> + 2 * tile_items; }

  static __device__ Item Run(SharedTile<Item>& tile, bool /*exclusive*/, Item neutral) {
    Item* const s_warps = tile.scratch();
    Item* const s_mine = s_warps + kTileWarps<Item> + 2 * kWarpThreads * WarpOfBlock() + kWarpThreads + LaneOfWarp();
    s_mine[-kWarpThreads] = neutral;
    return ScanByWarps<Op>(tile, neutral, s_warps, [s_mine](Item item) {
      *s_mine = item;
      __syncwarp();
      for (int distance = 1; distance < kWarpThreads; distance *= 2) {
        if constexpr (kWhere == RunningValue::kShared) item = *s_mine;
        item = Op::Combine(s_mine[-distance], item);
        __syncwarp();
        *s_mine = item;
        __syncwarp();
      }
      return item;
    });
  }
};

template <class Op>
using WarpSharedValue = WarpShared<Op, RunningValue::kShared>;
template <class Op>
using WarpSharedRegister = WarpShared<Op, RunningValue::kRegister>;

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_WARP_SHARED_CUH_
