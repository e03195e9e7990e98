// Scan down columns that are too few to keep a card busy, and long: a thread has a tile of a column.
//
// Three launches: the values of the tiles; what stands before each of them, by a warp for each column; and the scan of
// column_scan.cuh, tile by tile. Neighbouring threads have neighbouring columns, or where a row ends the next tile.
// Traffic: reads 2n, writes n, and four items for each tile.
#ifndef PREFIXD_KERNELS_CUDA_COLUMN_TILES_CUH_
#define PREFIXD_KERNELS_CUDA_COLUMN_TILES_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/column_scan.cuh"
#include "kernels/cuda/column_tile.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In, class Out, Op kOp>
struct ColumnTilesParams {
  using Item = typename Operator<kOp, Out>::Item;
  ColumnScanParams<In, Out> scan;
  ColumnTileStart<Item>* starts;  // For each column, tile by tile;
  Item* values;                   // and the values of all tiles but the last.
  uint64_t num_tiles;             // A column has at least 2.
};

template <class In, class Out, Op kOp, int kWidth>
__global__ void __launch_bounds__(kColumnThreads<ColumnItems<In, kWidth>>)
    ColumnTileValuesKernel(const ColumnTilesParams<In, Out, kOp> p) {
  extern __shared__ __align__(16) unsigned char s_column_items[];
  const uint64_t thread = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint64_t width = p.scan.num_columns / kWidth;
  const uint64_t tile = thread / width, column = (thread - tile * width) * kWidth;
  if (tile + 1 >= p.num_tiles) return;
  const int64_t first = static_cast<int64_t>(tile * kTileItems) * p.scan.pitch + static_cast<int64_t>(column);
  const ColumnTile<In, Out, kOp, kWidth> reduced(p.scan.in + first, p.scan.pitch * static_cast<int64_t>(sizeof(In)),
                                                 kTileItems, reinterpret_cast<ColumnItems<In, kWidth>*>(s_column_items),
                                                 Operator<kOp, Out>::Load(p.scan.neutral));
#pragma unroll
  for (int c = 0; c < kWidth; ++c) p.values[tile * p.scan.num_columns + column + c] = reduced.values[c];
}

inline constexpr int kColumnStartsThreads = 128;

// A warp has a column, and a lane a tile of a group.
template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kColumnStartsThreads) ColumnStartsKernel(const ColumnTilesParams<In, Out, kOp> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  const uint64_t column = uint64_t{blockIdx.x} * (kColumnStartsThreads / kWarpThreads) + WarpOfBlock();
  if (column >= p.scan.num_columns) return;
  const int lane = LaneOfWarp();
  const Item neutral = Operator::Load(p.scan.neutral);
  const auto load = [&](uint64_t tile) {
    return tile + 1 < p.num_tiles ? p.values[tile * p.scan.num_columns + column] : neutral;
  };
  Item groups = Operator::Load(p.scan.init), next = load(lane);
  for (uint64_t first = 0; first < p.num_tiles; first += kJoinSlots) {
    const uint64_t tile = first + lane;
    const Item item = next;
    next = load(tile + kJoinSlots);
    const WarpJoined<Item> joined = WarpJoins<Operator>(item, neutral);
    const Item left = ShuffleFrom(joined.value, lane - 1);
    const Item last = lane == 0 ? groups : Operator::Combine(groups, left);
    if (tile < p.num_tiles) p.starts[tile * p.scan.num_columns + column] = {groups, joined.before, last};
    groups = Operator::Combine(groups, ShuffleFrom(joined.value, kJoinSlots - 1));
  }
}

template <class In, class Out, Op kOp>
cudaError_t LaunchColumnTiles(const ScanArgs& args, LaunchContext* context) {
  using Params = ColumnTilesParams<In, Out, kOp>;
  using Item = typename Params::Item;
  Params params = {.scan = ColumnParamsOf<In, Out, kOp>(args), .starts = nullptr, .values = nullptr, .num_tiles = 0};
  params.num_tiles = (args.num_items + kTileItems - 1) / kTileItems;
  const uint64_t num_starts = params.num_tiles * args.num_arrays;
  void* d_scratch = nullptr;
  cudaError_t error =
      context->scratch.Get(context->stream, num_starts * (sizeof(*params.starts) + sizeof(Item)), &d_scratch);
  if (error != cudaSuccess) return error;
  params.starts = static_cast<ColumnTileStart<Item>*>(d_scratch);
  params.values = reinterpret_cast<Item*>(params.starts + num_starts);
  params.scan.tile_starts = params.starts;
  return WithColumnWidth<In, Out>(args, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    using Ring = ColumnRing<ColumnItems<In, kWidth>>;
    uint32_t num_blocks = 0;
    error = CountTiles((params.num_tiles - 1) * args.num_arrays / kWidth, Ring::kThreads, &num_blocks);
    if (error != cudaSuccess) return error;
    error = Launch(ColumnTileValuesKernel<In, Out, kOp, kWidth>, num_blocks, Ring::kThreads, context->stream, params,
                   Ring::kSharedBytes);
    if (error != cudaSuccess) return error;
    error = CountTiles(args.num_arrays, kColumnStartsThreads / kWarpThreads, &num_blocks);
    if (error != cudaSuccess) return error;
    error = Launch(ColumnStartsKernel<In, Out, kOp>, num_blocks, kColumnStartsThreads, context->stream, params);
    if (error != cudaSuccess) return error;
    return LaunchColumnsOf<In, Out, kOp, kWidth>(params.scan, params.num_tiles, context);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_COLUMN_TILES_CUH_
