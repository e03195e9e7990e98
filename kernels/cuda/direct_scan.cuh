// Scan of arrays of middling size: block b scans tile b, or tiles 2b and 2b + 1, and no tickets are taken.
//
// At these sizes most of the time passes before the first element arrives. A ticket is an atomic on memory that no
// cache holds, and the loads wait for it: a microsecond of seven. Here all loads start at once. But then a block may
// look back to a block that has not started, and that cannot start before this one ends. So a block that has looked for
// long enough computes and publishes the values of the missing tiles by itself, and then starts again. A value is the
// same, whoever publishes it. So no block depends on another, in whatever order they start and however few run at once.
// This needs elements that nobody overwrites, so it is not for scans in place. Nor does it take a carry_in: the last
// tile may write carry_out over it before another block has started. To keep the code short, others serve what is left
// out here: tile_scan.cuh and segment_scan.cuh.
//
// Traffic: reads n, writes n. One launch; nothing is reset before it.
//
// Source: Merrill and Garland 2016 for the single pass; Smith, Levien and Owens 2025 for the help.
#ifndef PREFIXD_KERNELS_CUDA_DIRECT_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_DIRECT_SCAN_CUH_

#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// About the number of multiprocessors of an H200: a second block on one starts late.
inline constexpr uint32_t kDirectScanBlocks = 128;
// For more tiles the ring is faster.
inline constexpr uint32_t kDirectScanTiles = 2 * kDirectScanBlocks;

// Loads the lane's run. Elements past the end become default elements.
template <class In>
__device__ Run<In> LoadRunUpTo(const In* in, uint64_t first_item, uint64_t num_items) {
  Run<In> run = {};
  if (first_item + kRunItems <= num_items) {
    run = *reinterpret_cast<const Run<In>*>(in + first_item);
  } else {
#pragma unroll
    for (int i = 0; i < kRunItems - 1; ++i) {
      if (first_item + i < num_items) run.items[i] = in[first_item + i];
    }
  }
  return run;
}

template <class Out>
__device__ void StoreRunUpTo(Out* out, uint64_t first_item, uint64_t num_items, const Run<Out>& run) {
  if (first_item + kRunItems <= num_items) {
    *reinterpret_cast<Run<Out>*>(out + first_item) = run;
  } else {
#pragma unroll
    for (int i = 0; i < kRunItems - 1; ++i) {
      if (first_item + i < num_items) out[first_item + i] = run.items[i];
    }
  }
}

// One block for each kTiles tiles, at most kDirectScanBlocks blocks, each of TileShape::kThreads.
// Needs: p.aligned, not p.reverse, in is not out, no carry_in.
template <class In, class Out, Op kOp, int kTiles>
__global__ void __launch_bounds__(TileShape::kThreads) DirectScanKernel(const __grid_constant__ ScanParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  constexpr uint32_t kGroups = kTiles * kDirectScanBlocks / kJoinSlots;
  static_assert(kGroups <= TileShape::kWarps, "a group a warp");
  static_assert(kJoinSlots % kTiles == 0, "a block's tiles are in one group");
  __shared__ Item s_leaf_values[kTiles][kJoinSlots];
  __shared__ LeafPrefix<Item> s_leaf_prefixes[kTiles][kJoinSlots];
  __shared__ Item s_groups[kGroups];
  __shared__ WarpJoined<Item> s_tiles[kJoinSlots];  // The tiles of the block's group.
  __shared__ uint32_t s_missing;

  const Item neutral = Operator::Load(p.neutral);
  const int leaf = LeafOfTile(0);
  const uint32_t own = blockIdx.x * kTiles;  // The block's first tile.
  const uint32_t group = own / kJoinSlots;
  for (uint32_t first_tile = own;;) {
    const auto first_item = [&](int t) { return uint64_t{first_tile + t} * kTileItems + FirstItemOfRun(0); };
    Run<In> elements[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) elements[t] = LoadRunUpTo(p.in, first_item(t), p.num_items);
    const uint32_t epoch = p.states.Epoch();
    Item runs[kTiles][kRunItems];
    Item before_runs[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) runs[t][i] = Operator::Load(elements[t].items[i]);
      before_runs[t] = JoinRun<Operator>(runs[t], neutral);
      if (LaneOfWarp() == kWarpThreads - 1) {
        s_leaf_values[t][leaf] = Operator::Combine(before_runs[t], runs[t][kRunItems - 1]);
      }
    }
    __syncthreads();

    if (const int t = TileShape::kWarps - 1 - WarpOfBlock(); t < kTiles) {
      const WarpJoined<Item> leaves = WarpJoins<Operator>(s_leaf_values[t][LaneOfWarp()], neutral);
      if (LaneOfWarp() == kWarpThreads - 1 && first_tile + t < p.num_tiles) {
        p.states.Publish(first_tile + t, epoch, leaves.value);
      }
      s_leaf_prefixes[t][LaneOfWarp()] = {leaves.before, ShuffleFrom(leaves.value, LaneOfWarp() - 1)};
    }
    // Look back, one group for each warp, up to the block's last tile but one.
    const uint32_t other = threadIdx.x;
    bool is_missing = other + 1 < min(own + kTiles, p.num_tiles);
    if (WarpOfBlock() <= group) {
      Item value = neutral;
      for (uint32_t looks = 0; is_missing && looks <= p.patience; ++looks) {
        is_missing = !p.states.template Load<Item>(other).Get(epoch, &value);
      }
      __syncwarp();
      const WarpJoined<Item> joined = WarpJoins<Operator>(value, neutral);
      if (WarpOfBlock() == group) s_tiles[LaneOfWarp()] = joined;
      if (WarpOfBlock() < group && LaneOfWarp() == kWarpThreads - 1) s_groups[WarpOfBlock()] = joined.value;
    }
    if (__syncthreads_or(is_missing)) {
      // Help: compute the first missing tiles next. After such help the block goes back to its own, below.
      if (threadIdx.x == 0) s_missing = own;
      __syncthreads();
      if (is_missing) atomicMin(&s_missing, other / kTiles * kTiles);
      __syncthreads();
      first_tile = s_missing;
      continue;
    }
    if (first_tile != own) {
      first_tile = own;
      continue;
    }
    if (threadIdx.x == 0) p.states.Leave();

    Item array = Operator::Load(p.init);
    for (uint32_t g = 0; g < group; ++g) array = Operator::Combine(array, s_groups[g]);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const auto slot = static_cast<int>((own + t) % kJoinSlots);
      const TilePrefix<Item> prefix = {array, s_tiles[slot].before, slot == 0 ? neutral : s_tiles[slot - 1].value};
      JoinArray<Operator>(runs[t], before_runs[t], s_leaf_prefixes[t][leaf].before, prefix);
      if (own + t == p.num_tiles - 1) KeepCarry<Operator>(p, first_item(t), runs[t]);
      if (p.exclusive) MoveByOne<Operator>(runs[t], leaf == 0, s_leaf_prefixes[t][leaf].up_to, prefix);
      Run<Out> results;
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) results.items[i] = Operator::Store(runs[t][i]);
      StoreRunUpTo(p.out, first_item(t), p.num_items, results);
    }
    return;
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_DIRECT_SCAN_CUH_
