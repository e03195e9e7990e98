// Scan of arrays that are small, or many: each block scans an array of its own, and blocks exchange nothing.
//
// The block goes through its array in steps of a tile, or of the array if that is shorter. A step needs from earlier
// steps only the values of the tiles in its own group, and the value of all groups before. Traffic: reads n, writes n.
// One launch; no memory but in and out. In place: a step is read before it is written.
#ifndef PREFIXD_KERNELS_CUDA_BLOCK_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_BLOCK_SCAN_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

inline constexpr int kBlockScanThreads = 1024;  // The most that a block has.
inline constexpr int kWarpItems = TileShape::kLeavesPerWarp * kLeafItems;
inline constexpr int kBlockScanItems = kBlockScanThreads / kWarpThreads * kWarpItems;  // In a whole step.

// Block b scans array b of gridDim.x arrays that follow each other, of one length or, where the parameters have
// offsets, of several. Threads: as many as a step of the longest array needs, or, if it takes several,
// kBlockScanThreads. Only a single array may have carries.
template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kBlockScanThreads)
    BlockScanKernel(const __grid_constant__ typename TileItems<kOp, In, Out>::Params p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  constexpr int kRows = TileShape::kLeavesPerWarp;
  constexpr int kStepTiles = kBlockScanItems / kTileItems;
  static_assert(kJoinSlots % kStepTiles == 0, "a step lies in one group");
  __shared__ Item s_leaf_values[kStepTiles * kJoinSlots];
  __shared__ LeafPrefix<Item> s_leaf_prefixes[kStepTiles * kJoinSlots];
  __shared__ Item s_tile_values[kJoinSlots];  // The tiles of the step's group.

  const ArrayItems array_items = ItemsOf(p, blockIdx.x);
  const uint64_t num_items = array_items.count;
  Out* out = p.out + array_items.begin;
  const Item neutral = Operator::Load(p.neutral);
  Item array = LoadStart<Operator>(p);
  if (num_items == 0 && p.carry_out != nullptr && threadIdx.x == 0) StoreCarry<Operator>(p, array);

  const int step_items = static_cast<int>(blockDim.x / kWarpThreads) * kWarpItems;
  const int step_leaves = step_items / kLeafItems;
  for (uint64_t step_begin = 0; step_begin < num_items; step_begin += step_items) {
    const uint64_t rest = num_items - step_begin;
    const int num_valid = rest < step_items ? static_cast<int>(rest) : step_items;
    TileItems<kOp, In, Out> items;
    items.Load(p, array_items, step_begin, num_valid);
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
    // Join the leaves of each tile of the step, one warp for each tile.
    const auto first_slot = static_cast<int>(step_begin / kTileItems % kJoinSlots);
    if (const int leaf = static_cast<int>(threadIdx.x);
        leaf < kStepTiles * kJoinSlots && WarpOfBlock() * kJoinSlots < step_leaves) {
      const WarpJoined<Item> joined = WarpJoins<Operator>(leaf < step_leaves ? s_leaf_values[leaf] : neutral, neutral);
      const Item up_to = ShuffleFrom(joined.value, LaneOfWarp() - 1);
      s_leaf_prefixes[leaf] = {joined.before, up_to};
      if (LaneOfWarp() == kWarpThreads - 1) s_tile_values[first_slot + WarpOfBlock()] = joined.value;
    }
    __syncthreads();
    // Join the group's tiles. Every warp does so, for its own tile.
    const int slot = first_slot + LeafOfTile(0) / kJoinSlots;
    const int known_slots = first_slot + (step_leaves - 1) / kJoinSlots + 1;
    const WarpJoined<Item> tiles =
        WarpJoins<Operator>(LaneOfWarp() < known_slots ? s_tile_values[LaneOfWarp()] : neutral, neutral);
    const Item group = ShuffleFrom(tiles.before, slot);
    const Item previous_tile = ShuffleFrom(tiles.value, slot - 1);
    const TilePrefix<Item> prefix = {array, group, slot == 0 ? neutral : previous_tile};
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int leaf = LeafOfTile(row);
      JoinArray<Operator>(runs[row], before_run[row], s_leaf_prefixes[leaf].before, prefix);
      if (rest <= step_items) KeepCarry<Operator>(p, step_begin + FirstItemOfRun(row), runs[row]);
      if (p.exclusive) MoveByOne<Operator>(runs[row], leaf % kJoinSlots == 0, s_leaf_prefixes[leaf].up_to, prefix);
    }
    ThreadRuns<Out> results;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) results[row].items[i] = Operator::Store(runs[row][i]);
    }
    StoreTile(TileView<Out>(out, num_items, step_begin, p.reverse), num_valid, p.aligned, results);
    if (known_slots == kJoinSlots) array = Operator::Combine(array, ShuffleFrom(tiles.value, kJoinSlots - 1));
  }
}

template <class In, class Out, Op kOp>
cudaError_t LaunchBlockScan(const ScanArgs& args, const typename TileItems<kOp, In, Out>::Params& params,
                            LaunchContext* context) {
  const uint64_t num_leaves = (args.num_items + kLeafItems - 1) / kLeafItems;
  const auto num_warps = static_cast<uint32_t>(std::clamp<uint64_t>(num_leaves, 1, TileShape::kWarps));
  return Launch(BlockScanKernel<In, Out, kOp>, static_cast<uint32_t>(args.num_arrays), num_warps * kWarpThreads,
                context->stream, params);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_BLOCK_SCAN_CUH_
