// Compact, tiles in registers: for small arrays, many of them, and cards before sm_90.
//
// A warp holds a run of consecutive items, one row of 32 at a time. A ballot a row says which items are kept, and
// counting its bits gives each its rank. Kept items are gathered in shared memory, so that they are written coalesced.
// Traffic: reads n (and the mask; with a mask, the elements only if they are wanted), writes what is kept.
// Source: Merrill and Garland 2016.
#ifndef PREFIXD_KERNELS_CUDA_TILE_COMPACT_CUH_
#define PREFIXD_KERNELS_CUDA_TILE_COMPACT_CUH_

#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class T>
struct TileCompactShape {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerMultiprocessor = 4;
  static constexpr int kWarps = kThreads / kWarpThreads;
  static constexpr int kRows = sizeof(T) == 8 ? 8 : 16;
  static constexpr int kWarpItems = kRows * kWarpThreads;
  static constexpr int kTileItems = kRows * kThreads;
};

// kBatched: block b compacts array b of gridDim.x arrays that follow each other, by itself, tile after tile. Otherwise
// the blocks take the tiles of one array by ticket. Both set *h_num_kept to the number of all elements kept.
template <class T, Selector kSelector, bool kBatched>
__global__ void __launch_bounds__(TileCompactShape<T>::kThreads, TileCompactShape<T>::kBlocksPerMultiprocessor)
    TileCompactKernel(const __grid_constant__ CompactParams<T> params) {
  using Shape = TileCompactShape<T>;
  using Fold = GroupFold<CountSum, Shape::kWarps, uint64_t>;
  static_assert(Shape::kTileItems <= 1 << 16, "s_positions holds positions within a tile");
  __shared__ T s_values[Shape::kTileItems];
  __shared__ uint16_t s_positions[Shape::kTileItems];
  __shared__ uint32_t s_warp_counts[Shape::kWarps];
  __shared__ typename Fold::Shared s_fold;
  __shared__ uint32_t s_tile;

  const CompactParams<T> p = kBatched ? ArrayOf(params, blockIdx.x) : params;
  const uint32_t epoch = kBatched ? 0 : p.states.Epoch();
  Fold fold(p.states, epoch, 0, 0, WarpOfBlock(), s_fold);
  const bool wants_indices = p.indices_u32 != nullptr || p.indices_u64 != nullptr;
  const int first_position = WarpOfBlock() * Shape::kWarpItems + LaneOfWarp();  // The thread's item in row 0.
  uint64_t slot = 0;  // Where the tile's first kept element goes.

  for (uint32_t next_tile = 0;; ++next_tile) {
    if (threadIdx.x == 0) s_tile = kBatched ? next_tile : p.states.TakeTile();
    __syncthreads();
    const uint32_t tile = s_tile;
    if (tile >= p.num_tiles) break;
    const uint64_t tile_begin = uint64_t{tile} * Shape::kTileItems;

    // Load, and select. Items past the end are never kept, inverted or not.
    const bool needs_elements = kSelector == Selector::kPredicate || p.values != nullptr;
    T elements[Shape::kRows];
#pragma unroll
    for (int row = 0; row < Shape::kRows; ++row) {
      const uint64_t item = tile_begin + first_position + row * kWarpThreads;
      elements[row] = needs_elements && item < p.num_items ? p.in[item] : T{};
    }
    uint32_t kept[Shape::kRows];
    uint32_t warp_count = 0;
#pragma unroll
    for (int row = 0; row < Shape::kRows; ++row) {
      const uint64_t item = tile_begin + first_position + row * kWarpThreads;
      const bool is_kept = item < p.num_items && IsSelected<T, kSelector>(p, elements[row], item) != p.invert;
      kept[row] = __ballot_sync(kAllLanes, is_kept);
      warp_count += __popc(kept[row]);
    }

    // Count.
    if (LaneOfWarp() == 0) s_warp_counts[WarpOfBlock()] = warp_count;
    __syncthreads();
    uint32_t warp_prefix = 0;
    uint32_t tile_count = 0;
#pragma unroll
    for (int warp = 0; warp < Shape::kWarps; ++warp) {
      if (warp == WarpOfBlock()) warp_prefix = tile_count;
      tile_count += s_warp_counts[warp];
    }
    if (!kBatched && threadIdx.x == 0) p.states.Publish(tile, epoch, tile_count);

    // Gather what is kept, in order.
    const uint32_t lanes_before = (1u << LaneOfWarp()) - 1;
    uint32_t row_rank = warp_prefix;
#pragma unroll
    for (int row = 0; row < Shape::kRows; ++row) {
      if (kept[row] >> LaneOfWarp() & 1) {
        const uint32_t rank = row_rank + __popc(kept[row] & lanes_before);
        if (p.values != nullptr) s_values[rank] = elements[row];
        if (wants_indices) s_positions[rank] = static_cast<uint16_t>(first_position + row * kWarpThreads);
      }
      row_rank += __popc(kept[row]);
    }

    // Join the tiles.
    if constexpr (kBatched) {
      __syncthreads();
    } else {
      const auto slot_of_group = static_cast<int>(tile % kJoinSlots);
      fold.WaitFor(tile / kJoinSlots, slot_of_group, [] { __syncthreads(); });
      const TilePrefix<uint32_t, uint64_t> prefix = fold.Prefix(slot_of_group);
      slot = prefix.array + prefix.group;
    }
    if (tile == p.num_tiles - 1 && threadIdx.x == 0) {
      *p.count = slot + tile_count;
      if (!kBatched) *p.h_num_kept = slot + tile_count;
    }

    // Write.
    for (uint32_t rank = threadIdx.x; rank < tile_count; rank += Shape::kThreads) {
      if (p.values != nullptr) p.values[slot + rank] = s_values[rank];
      if (wants_indices) {
        const uint64_t index = p.first_item + tile_begin + s_positions[rank];
        if (p.indices_u32 != nullptr) {
          p.indices_u32[slot + rank] = static_cast<uint32_t>(index);
        } else {
          p.indices_u64[slot + rank] = index;
        }
      }
    }
    slot += tile_count;
  }
  if (threadIdx.x != 0) return;
  if constexpr (kBatched) {
    p.states.LeaveCounting(slot, p.h_num_kept);
  } else {
    p.states.Leave();
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_TILE_COMPACT_CUH_
