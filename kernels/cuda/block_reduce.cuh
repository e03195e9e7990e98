// Reduce of arrays that are small, or many: each block reduces an array of its own, and blocks exchange nothing.
//
// The block goes through its array tile by tile, one leaf in each warp, and keeps the values of the group's tiles.
// Traffic: reads n. One launch.
#ifndef PREFIXD_KERNELS_CUDA_BLOCK_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_BLOCK_REDUCE_CUH_

#include <cstdint>

#include "kernels/cuda/reduce_parts.cuh"

namespace prefixd::cuda {

// Block b reduces array b of gridDim.x arrays that follow each other, into state_out[b]. Threads: a warp for each leaf
// of a tile that the array has, at most TileShape::kThreads. Only a single array may have a state_in.
template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(TileShape::kThreads)
    BlockReduceKernel(const __grid_constant__ ReduceParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  static_assert(TileShape::kLeavesPerWarp == 1);
  __shared__ Item s_leaf_values[kJoinSlots];
  __shared__ Item s_tile_values[kJoinSlots];  // The tiles of the current group.
  __shared__ unsigned long long s_first;

  const In* in = p.in + blockIdx.x * p.num_items;
  const ReduceState start = p.state_in != nullptr ? *p.state_in : p.init;
  const Item neutral = Operator::Load(p.neutral);
  Item array = FoldStart<kOp>(p, start);
  const int num_warps = static_cast<int>(blockDim.x) / kWarpThreads;

  for (uint64_t tile = 0; tile * kTileItems < p.num_items; ++tile) {
    const int num_valid = NumValid(p.num_items, tile * kTileItems);
    ThreadRuns<In> runs;
    LoadTile(TileView<const In>(in, p.num_items, tile * kTileItems, false), num_valid, In{}, p.aligned, runs);
    const Item leaf_value = LeafValue<Operator>(runs[0], num_valid - WarpOfBlock() * kLeafItems, neutral);
    if (LaneOfWarp() == 0) s_leaf_values[WarpOfBlock()] = leaf_value;
    __syncthreads();
    const int slot = static_cast<int>(tile % kJoinSlots);
    const bool is_last = (tile + 1) * kTileItems >= p.num_items;
    if (WarpOfBlock() == 0) {
      const Item leaf = LaneOfWarp() < num_warps ? s_leaf_values[LaneOfWarp()] : neutral;
      const Item value = WarpJoin<Operator>(leaf, neutral, LastSlot(num_valid, kLeafItems));
      if (LaneOfWarp() == 0) s_tile_values[slot] = value;
      __syncwarp();
      if (slot == kJoinSlots - 1 || is_last) {
        const Item known = LaneOfWarp() <= slot ? s_tile_values[LaneOfWarp()] : neutral;
        array = Operator::Combine(array, WarpJoin<Operator>(known, neutral, slot));
      }
    }
    __syncthreads();
  }

  // The first warp knows the value.
  if (WarpOfBlock() != 0) return;
  const auto sync = [] { __syncwarp(); };
  FinishReduce<kOp>(
      p, in, start, array, p.state_out + blockIdx.x, LaneOfWarp(), kWarpThreads, &s_first,
      [&]() -> uint64_t {
        // Search the tiles in order for the first that has the value.
        for (uint64_t begin = 0; begin < p.num_items; begin += kTileItems) {
          const uint64_t end = min(begin + kTileItems, p.num_items);
          bool found = false;
          for (uint64_t i = begin + LaneOfWarp(); i < end && !found; i += kWarpThreads) {
            found = IsSame<kOp, Out>(Operator::Load(in[i]), array);
          }
          if (__any_sync(kAllLanes, found)) return begin;
        }
        return 0;
      },
      sync);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_BLOCK_REDUCE_CUH_
