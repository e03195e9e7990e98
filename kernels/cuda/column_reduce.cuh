// Reduce down the columns of a matrix to a value each: a batch whose arrays are interleaved.
//
// A thread has a tile of a column, or of a few that stand side by side, and walks down (column_scan.cuh). Neighbouring
// threads have neighbouring columns, and where there are few columns the next tiles of them. See array_reduce.cuh for
// columns of several tiles.
// Traffic: reads n, writes a value for each column. One launch.
#ifndef PREFIXD_KERNELS_CUDA_COLUMN_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_COLUMN_REDUCE_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/array_reduce.cuh"
#include "kernels/cuda/column_tile.cuh"
#include "kernels/cuda/tile_io.cuh"

namespace prefixd::cuda {

// The start, joined with the tiles whose states are `pitch` slots apart. Called by one thread, or by those of other
// columns at the same time.
template <class Operator>
__device__ typename Operator::Item FoldTilesAlone(const TileStates& states, uint32_t epoch, uint64_t first_slot,
                                                  uint64_t pitch, uint64_t num_tiles, typename Operator::Item start,
                                                  typename Operator::Item neutral) {
  using Item = typename Operator::Item;
  constexpr int kAhead = 8;  // States that are read at once.
  Item array = start;
  Slots<Operator> tiles;
  tiles.tree = neutral;
  for (uint64_t first = 0; first < num_tiles; first += kAhead) {
    Item values[kAhead];
    for (bool found = false; !found;) {
      StateWords<Item> words[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        words[i] = states.Load<Item>(static_cast<uint32_t>(first_slot + min(first + i, num_tiles - 1) * pitch));
      }
      found = true;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) found &= words[i].Get(epoch, &values[i]);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const uint64_t tile = first + i;
      if (tile >= num_tiles) break;
      const auto slot = static_cast<uint32_t>(tile % kJoinSlots);
      if (slot == kJoinSlots - 1 || tile == num_tiles - 1) {
        array = Operator::Combine(array, Operator::Combine(tiles.tree, values[i]));
        tiles.tree = neutral;
      } else {
        tiles.Add(slot, values[i]);
      }
    }
  }
  return array;
}

template <class In, class Out, Op kOp, int kWidth>
__global__ void __launch_bounds__(kColumnThreads<ColumnItems<In, kWidth>>)
    ColumnReduceKernel(const __grid_constant__ ArrayReduceParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  extern __shared__ __align__(16) unsigned char s_column_items[];  // At first the block's ticket.
  const uint64_t width = p.num_arrays / kWidth;                    // Threads for a row.
  const uint64_t block = TakeBlock(p, reinterpret_cast<uint32_t*>(s_column_items));
  if (p.is_split) __syncthreads();  // All have read the ticket.
  const uint64_t thread = block * blockDim.x + threadIdx.x;
  const uint64_t tile = thread / width;
  const uint64_t column = (thread - tile * width) * kWidth;
  const bool has_tile = tile < p.array_tiles;
  const Item neutral = Operator::Load(p.each.neutral);
  const uint32_t epoch = p.is_split ? p.each.states.Epoch() : 0;
  if (has_tile) {
    const ColumnTile<In, Out, kOp, kWidth> reduced(p.each.in + tile * kTileItems * p.num_arrays + column,
                                                   static_cast<int64_t>(p.num_arrays * sizeof(In)),
                                                   NumValid(p.each.num_items, tile * kTileItems),
                                                   reinterpret_cast<ColumnItems<In, kWidth>*>(s_column_items), neutral);
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      if (!p.is_split) {
        StoreValue<kOp>(p, column + c, Operator::Combine(FoldStart<kOp>(p.each, p.each.init), reduced.values[c]));
      } else {
        p.each.states.Publish(static_cast<uint32_t>(tile * p.num_arrays + column + c), epoch, reduced.values[c]);
      }
    }
  }
  // A warp may have tiles of one column: all of them are published before any of its threads waits.
  __syncwarp();
  if (p.is_split && tile == p.array_tiles - 1) {
    for (int c = 0; c < kWidth; ++c) {
      StoreValue<kOp>(p, column + c,
                      FoldTilesAlone<Operator>(p.each.states, epoch, column + c, p.num_arrays, p.array_tiles,
                                               FoldStart<kOp>(p.each, p.each.init), neutral));
    }
  }
  LeaveBlock(p);
}

template <class In, class Out, Op kOp, int kWidth>
cudaError_t LaunchColumnReduceOf(ArrayReduceParams<In, Out>& params, LaunchContext* context) {
  using Item = typename Operator<kOp, Out>::Item;
  using Ring = ColumnRing<ColumnItems<In, kWidth>>;
  cudaError_t error = CountSlots(Ring::kThreads * kWidth, &params);
  if (error == cudaSuccess) error = PrepareStates<Item>(params.num_slots, context, &params);
  if (error != cudaSuccess) return error;
  return Launch(ColumnReduceKernel<In, Out, kOp, kWidth>, params.each.num_tiles, Ring::kThreads, context->stream,
                params, std::max(Ring::kSharedBytes, sizeof(uint32_t)));
}

// Needs: num_items > 0.
template <class In, class Out, Op kOp>
cudaError_t LaunchColumnReduce(const ReduceArgs& args, LaunchContext* context) {
  ArrayReduceParams<In, Out> params = ArrayParamsOf<In, Out, kOp>(args);
  constexpr int kWidth = 8 / sizeof(In);
  if constexpr (kWidth > 1) {
    const bool aligned = reinterpret_cast<uintptr_t>(args.in) % 8 == 0 && args.num_arrays % kWidth == 0;
    if (aligned) return LaunchColumnReduceOf<In, Out, kOp, kWidth>(params, context);
  }
  return LaunchColumnReduceOf<In, Out, kOp, 1>(params, context);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_COLUMN_REDUCE_CUH_
