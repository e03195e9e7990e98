// Scan, single pass, tiles in registers: for arrays of up to 256 KiB, by a recurrence those that are read backwards or
// not aligned, and on cards before sm_90 those of up to 1 MiB or with carries.
//
// A block takes a tile by ticket, loads it into registers, joins its leaves, looks back to learn what stands before it,
// and writes it. Kind, direction, alignment and carry are run-time parameters: only types and operator make a kernel.
// Traffic: reads n, writes n. One launch; nothing is reset before it.
// In place: a block has read its whole tile before it writes it, and no other block touches the tile.
// Source: Merrill and Garland 2016; see look_back.cuh.
#ifndef PREFIXD_KERNELS_CUDA_TILE_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_TILE_SCAN_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

inline constexpr int kTileScanBlocksPerMultiprocessor = 2;

template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(TileShape::kThreads)
    TileScanKernel(const __grid_constant__ typename TileItems<kOp, In, Out>::Params p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  constexpr int kRows = TileShape::kLeavesPerWarp;
  using Fold = GroupFold<Operator, TileShape::kWarps>;
  __shared__ Item s_leaf_values[kJoinSlots];
  __shared__ LeafPrefix<Item> s_leaf_prefixes[kJoinSlots];
  __shared__ typename Fold::Shared s_fold;
  __shared__ uint32_t s_tile;

  // Every block reads carry_in before it publishes anything. The last tile writes carry_out, which may be the same
  // element, after it has seen the values of all other tiles. The fences put these reads before this write.
  const uint32_t epoch = p.states.Epoch();
  const Item neutral = Operator::Load(p.neutral);
  Fold fold(p.states, epoch, LoadStart<Operator>(p), neutral, WarpOfBlock(), s_fold);
  if (p.carry_in != nullptr) __threadfence();
  if (threadIdx.x == 0) {
    s_tile = p.states.TakeTile();
    if (s_tile >= p.num_tiles) p.states.Leave();
  }
  __syncthreads();

  for (;;) {
    const uint32_t tile = s_tile;
    if (tile >= p.num_tiles) return;
    const uint64_t tile_begin = uint64_t{tile} * kTileItems;
    const int num_valid = NumValid(p.num_items, tile_begin);
    TileItems<kOp, In, Out> items;
    items.Load(p, {.begin = 0, .count = p.num_items}, tile_begin, num_valid);
    Item runs[kRows][kRunItems];
    Item before_run[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) runs[row][i] = items.At(row, i);
      before_run[row] = JoinRun<Operator>(runs[row], neutral);
      if (LaneOfWarp() == kWarpThreads - 1) {
        s_leaf_values[LeafOfTile(row)] = Operator::Combine(before_run[row], runs[row][kRunItems - 1]);
      }
    }
    __syncthreads();

    if (WarpOfBlock() == TileShape::kWarps - 1) {
      const WarpJoined<Item> leaves = WarpJoins<Operator>(s_leaf_values[LaneOfWarp()], neutral);
      if (LaneOfWarp() == kWarpThreads - 1) p.states.Publish(tile, epoch, leaves.value);
      const Item up_to = ShuffleFrom(leaves.value, LaneOfWarp() - 1);
      s_leaf_prefixes[LaneOfWarp()] = {leaves.before, up_to};
    }
    // Take the next ticket meanwhile. Where every tile has its own block, there is no next ticket.
    if (threadIdx.x == 0) s_tile = gridDim.x < p.num_tiles ? p.states.TakeTile() : p.num_tiles;
    const auto slot = static_cast<int>(tile % kJoinSlots);
    fold.WaitFor(tile / kJoinSlots, slot, [] { __syncthreads(); });
    const TilePrefix<Item> prefix = fold.Prefix(slot);
    if (threadIdx.x == 0 && s_tile >= p.num_tiles) p.states.Leave();
    ThreadRuns<Out> results;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const LeafPrefix<Item> leaf = s_leaf_prefixes[LeafOfTile(row)];
      JoinArray<Operator>(runs[row], before_run[row], leaf.before, prefix);
      if (tile == p.num_tiles - 1) KeepCarry<Operator>(p, tile_begin + FirstItemOfRun(row), runs[row]);
      if (p.exclusive) MoveByOne<Operator>(runs[row], LeafOfTile(row) == 0, leaf.up_to, prefix);
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) results[row].items[i] = Operator::Store(runs[row][i]);
    }
    StoreTile(TileView<Out>(p.out, p.num_items, tile_begin, p.reverse), num_valid, p.aligned, results);
  }
}

template <class In, class Out, Op kOp>
cudaError_t LaunchTileScan(typename TileItems<kOp, In, Out>::Params& params, LaunchContext* context) {
  using Item = typename Operator<kOp, Out>::Item;
  const cudaError_t error = PrepareTickets<Item>(kTileItems, /*ticket_states=*/1, context, &params);
  if (error != cudaSuccess) return error;
  const auto num_blocks =
      std::min<uint32_t>(params.num_tiles, kTileScanBlocksPerMultiprocessor * context->num_multiprocessors);
  return Launch(TileScanKernel<In, Out, kOp>, num_blocks, TileShape::kThreads, context->stream, params);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_TILE_SCAN_CUH_
