// Reduce, single pass, tiles in registers: for arrays of middling size, or on cards before sm_90.
//
// Blocks take tiles by ticket and publish their values. The block that took the first tile also folds the values, as
// far as the tickets that it takes. No other block waits for anything.
// Traffic: reads n. One launch; nothing is reset before it.
#ifndef PREFIXD_KERNELS_CUDA_TILE_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_TILE_REDUCE_CUH_

#include <cstdint>

#include "kernels/cuda/reduce_parts.cuh"

namespace prefixd::cuda {

inline constexpr int kTileReduceBlocksPerMultiprocessor = 2;

template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(TileShape::kThreads)
    TileReduceKernel(const __grid_constant__ ReduceParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Fold = GroupFold<Operator, TileShape::kWarps>;
  __shared__ Item s_leaf_values[kJoinSlots];
  __shared__ typename Fold::Shared s_fold;
  __shared__ unsigned long long s_first;
  __shared__ uint32_t s_tile;

  const auto sync = [] { __syncthreads(); };
  const uint32_t epoch = p.states.Epoch();
  const Item neutral = Operator::Load(p.neutral);
  if (threadIdx.x == 0) s_tile = p.states.TakeTile();
  __syncthreads();
  const bool is_follower = s_tile == 0;
  const ReduceState start = is_follower && p.state_in != nullptr ? *p.state_in : p.init;
  Fold fold(p.states, epoch, FoldStart<kOp>(p, start), neutral, WarpOfBlock(), s_fold);

  BestTile<kOp, Out> best_tile;
  for (uint32_t tile = s_tile; tile < p.num_tiles; tile = s_tile) {
    const uint64_t tile_begin = uint64_t{tile} * kTileItems;
    const int num_valid = NumValid(p.num_items, tile_begin);
    ThreadRuns<In> runs;
    LoadTile(TileView<const In>(p.in, p.num_items, tile_begin, false), num_valid, In{}, p.aligned, runs);
    const Item leaf_value = LeafValue<Operator>(runs[0], num_valid - WarpOfBlock() * kLeafItems, neutral);
    if (LaneOfWarp() == 0) s_leaf_values[WarpOfBlock()] = leaf_value;
    __syncthreads();
    if (WarpOfBlock() == TileShape::kWarps - 1) {
      const Item value = WarpJoin<Operator>(s_leaf_values[LaneOfWarp()], neutral, LastSlot(num_valid, kLeafItems));
      if (LaneOfWarp() == 0) p.states.Publish(tile, epoch, value);
    }
    // Take the next ticket meanwhile. Where every tile has its own block, there is no next ticket.
    if (threadIdx.x == 0) s_tile = gridDim.x < p.num_tiles ? p.states.TakeTile() : p.num_tiles;
    if (is_follower) {
      fold.WaitFor(tile / kJoinSlots, static_cast<int>(tile % kJoinSlots), sync, best_tile);
    } else {
      __syncthreads();
    }
  }

  if (is_follower) {
    const Item value = fold.WaitForAll(p.num_tiles, sync, best_tile);
    FinishReduce<kOp>(
        p, p.in, start, value, p.state_out, threadIdx.x, blockDim.x, &s_first,
        [&] { return best_tile.First(value, threadIdx.x == 0, &s_first, sync) * kTileItems; }, sync);
  }
  if (threadIdx.x == 0) p.states.Leave();
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_TILE_REDUCE_CUH_
