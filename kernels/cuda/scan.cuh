// Scan, strategy "chained": one pass over the data, in the order of kernels/NUMERICS.md.
//
// A block takes a tile by ticket, loads it into registers, joins its leaves, learns what stands before it by look-back,
// and writes it. Kind, direction, alignment and carry are run-time parameters: only type and operator make a kernel.
// Traffic: reads n, writes n. One launch; nothing is reset before it.
// In place: a block has read its whole tile before it writes it, and no other block touches the tile.
// Source: Merrill and Garland, NVR-2016-002; see look_back.cuh.
#ifndef PREFIXD_KERNELS_CUDA_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_SCAN_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// Tiles in flight on a multiprocessor: 64 KiB of 4-byte items, 96 KiB of 8-byte ones.
template <class T>
inline constexpr int kScanBlocksPerMultiprocessor = sizeof(T) == 8 ? 3 : 4;

template <class T>
struct ScanParams {
  const T* in;
  T* out;  // May be in; so neither is __restrict__.
  uint64_t num_items;
  uint32_t num_tiles;
  T init;
  T neutral;
  const T* carry_in;
  T* carry_out;  // May be carry_in.
  bool exclusive;
  bool reverse;
  bool aligned;  // Whole tiles of in and out can be moved run by run.
  TileStates<T> states;
};

template <class T, Op kOp>
__global__ void __launch_bounds__(TileShape::kThreads, kScanBlocksPerMultiprocessor<T>)
    ScanKernel(const __grid_constant__ ScanParams<T> p) {
  using Operator = Operator<kOp, T>;
  constexpr int kRows = TileShape::kLeavesPerWarp;
  __shared__ T s_leaf_values[kJoinSlots];
  __shared__ T s_before_leaf[kJoinSlots];  // The tree of the tile's leaves before it.
  __shared__ T s_up_to_leaf[kJoinSlots];   // The value of the tile's items before it.
  __shared__ TilePrefix<T> s_prefix;
  __shared__ uint32_t s_tile;

  // Every block reads carry_in before it publishes anything, and the last tile writes carry_out, which may be the same,
  // after it has seen every other tile's value: the fences make that an order.
  const uint32_t epoch = p.states.Epoch();
  GroupFold<Operator, T> fold(p.states, epoch, p.carry_in != nullptr ? *p.carry_in : p.init, p.neutral);
  __threadfence();

  for (;;) {
    if (threadIdx.x == 0) s_tile = p.states.TakeTile();
    __syncthreads();
    const uint32_t tile = s_tile;
    if (tile >= p.num_tiles) break;
    const uint64_t tile_begin = uint64_t{tile} * kTileItems;
    const int num_valid = NumValid(p.num_items, tile_begin);
    const bool aligned = p.aligned && num_valid == kTileItems;

    // values[row].items[i] becomes the value of the leaf's items up to that one.
    ThreadRuns<T> values;
    LoadTile(TileView<const T>(p.in, p.num_items, tile_begin, p.reverse), num_valid, p.neutral, aligned, values);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      T(&run)[kRunItems] = values[row].items;
#pragma unroll
      for (int i = 1; i < kRunItems; ++i) run[i] = Operator::Combine(run[i - 1], run[i]);
      const WarpJoined<T> joined = WarpJoins<Operator>(run[kRunItems - 1], p.neutral);
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) run[i] = Operator::Combine(joined.before, run[i]);
      const int last_run = LastSlot(num_valid - LeafOfTile(row) * kLeafItems, kRunItems);
      if (LaneOfWarp() == last_run) s_leaf_values[LeafOfTile(row)] = joined.value;
    }
    __syncthreads();

    if (WarpOfBlock() == 0) {
      const WarpJoined<T> leaf = WarpJoins<Operator>(s_leaf_values[LaneOfWarp()], p.neutral);
      const T tile_value = ShuffleFrom(leaf.value, LastSlot(num_valid, kLeafItems));
      if (LaneOfWarp() == 0) p.states.Publish(tile, epoch, tile_value);
      s_before_leaf[LaneOfWarp()] = leaf.before;
      s_up_to_leaf[LaneOfWarp()] = ShuffleFrom(leaf.value, LaneOfWarp() - 1);  // Lane 0's is not read.
      const TilePrefix<T> prefix = fold.Before(tile);
      if (LaneOfWarp() == 0) {
        s_prefix = prefix;
        if (tile == p.num_tiles - 1 && p.carry_out != nullptr) {
          __threadfence();
          *p.carry_out = Canonical(Operator::Combine(prefix.array, Operator::Combine(prefix.group, tile_value)));
        }
      }
    }
    __syncthreads();

#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      T(&run)[kRunItems] = values[row].items;
      const T before_leaf = s_before_leaf[LeafOfTile(row)];
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) {  // In the group.
        run[i] = Operator::Combine(s_prefix.group, Operator::Combine(before_leaf, run[i]));
      }
      if (p.exclusive) {  // Moved by one.
        T previous = ShuffleFrom(run[kRunItems - 1], LaneOfWarp() - 1);
        if (LaneOfWarp() == 0) {
          previous = LeafOfTile(row) == 0 ? s_prefix.previous_tile
                                          : Operator::Combine(s_prefix.group, s_up_to_leaf[LeafOfTile(row)]);
        }
#pragma unroll
        for (int i = kRunItems - 1; i > 0; --i) run[i] = run[i - 1];
        run[0] = previous;
      }
#pragma unroll
      for (int i = 0; i < kRunItems; ++i) run[i] = Canonical(Operator::Combine(s_prefix.array, run[i]));
    }
    StoreTile(TileView<T>(p.out, p.num_items, tile_begin, p.reverse), num_valid, aligned, values);
  }
  if (threadIdx.x == 0) p.states.Leave();
}

template <class T>
cudaError_t LaunchScan(const ScanArgs& args, LaunchContext* context) {
  ScanParams<T> params = {.in = static_cast<const T*>(args.in),
                          .out = static_cast<T*>(args.out),
                          .num_items = args.num_items,
                          .num_tiles = 0,
                          .init = args.init.As<T>(),
                          .neutral = Neutral(args.op, args.dtype).template As<T>(),
                          .carry_in = static_cast<const T*>(args.carry_in),
                          .carry_out = static_cast<T*>(args.carry_out),
                          .exclusive = args.kind == ScanKind::kExclusive,
                          .reverse = args.reverse,
                          .aligned = false,
                          .states = {}};
  params.aligned = !args.reverse && HasAlignedRuns(params.in) && HasAlignedRuns(params.out);
  cudaError_t error = CountTiles(args.num_items, kTileItems, &params.num_tiles);
  if (error == cudaSuccess) error = MakeStates(params.num_tiles, context, &params.states);
  if (error != cudaSuccess) return error;
  const auto num_blocks =
      std::min<uint32_t>(params.num_tiles, kScanBlocksPerMultiprocessor<T> * context->num_multiprocessors);
  return VisitOp<T>(args.op, [&](auto op) {
    return Launch(ScanKernel<T, decltype(op)::kValue>, num_blocks, TileShape::kThreads, context->stream, params);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SCAN_CUH_
