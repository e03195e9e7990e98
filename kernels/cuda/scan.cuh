// Scan, strategy "chained": one pass over the data, tiles joined by decoupled look-back.
//
// A block takes a tile by ticket, loads it, scans it in registers, learns what stands before it by look-back, and
// writes it. Kind, direction and carry are run-time parameters: only type and operator make a kernel.
// Traffic: reads n, writes n; 4 + 2 * sizeof(T) bytes of state a tile, their statuses reset by a memset before.
// In place: a block has read its whole tile before it writes it, and no other block touches the tile.
// Source: Merrill and Garland, NVR-2016-002.
#ifndef PREFIXD_KERNELS_CUDA_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_SCAN_CUH_

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_scan.cuh"

namespace prefixd::cuda {

// Tiles in flight on a multiprocessor, about 90 KiB; costs 40 registers a thread, and none spills on sm_90.
inline constexpr int kScanBlocksPerMultiprocessor = 6;

template <class T>
struct ScanParams {
  const T* in;
  T* out;  // May be in; so neither is __restrict__.
  uint64_t num_items;
  T init;
  T neutral;
  const T* carry_in;
  T* carry_out;  // May be carry_in.
  bool exclusive;
  bool reverse;
  TileStates<T> states;
};

template <class T, Op kOp>
__global__ void __launch_bounds__(TileShape<T>::kThreads, kScanBlocksPerMultiprocessor)
    ScanKernel(const ScanParams<T> p) {
  using Shape = TileShape<T>;
  using Operator = Operator<kOp, T>;
  __shared__ T s_items[Shape::kTileItems];
  __shared__ T s_warp_aggregates[Shape::kWarps];
  __shared__ T s_tile_prefix;
  __shared__ uint32_t s_tile;

  if (threadIdx.x == 0) s_tile = p.states.TakeTile();
  __syncthreads();
  const uint32_t tile = s_tile;
  const uint64_t tile_begin = uint64_t{tile} * Shape::kTileItems;
  const int num_valid = NumValid<T>(p.num_items, tile_begin);

  // Load, and hand each thread its run. A partial tile is filled up with a value that changes nothing.
  LoadTile(TileView<const T>(p.in, p.num_items, tile_begin, p.reverse), num_valid, p.neutral, s_items);
  __syncthreads();
  T* const s_run = s_items + threadIdx.x * Shape::kItemsPerThread;
  T items[Shape::kItemsPerThread];
#pragma unroll
  for (int i = 0; i < Shape::kItemsPerThread; ++i) items[i] = s_run[i];

  // Scan the threads' aggregates.
  T thread_aggregate = items[0];
#pragma unroll
  for (int i = 1; i < Shape::kItemsPerThread; ++i) thread_aggregate = Operator::Combine(thread_aggregate, items[i]);
  const BlockPrefix<T> thread = BlockExclusiveScan<Operator>(thread_aggregate, p.neutral, s_warp_aggregates);

  // Join the tiles. carry_out may be carry_in: only tile 0 reads it, before it publishes, and only the last tile
  // writes, after its look-back; so the read happens before the write.
  if (WarpOfBlock() == 0) {
    const T start = tile == 0 && p.carry_in != nullptr ? *p.carry_in : p.init;
    const T tile_prefix = ChainTile<Operator>(p.states, tile, thread.aggregate, start, p.neutral);
    if (threadIdx.x == 0) {
      s_tile_prefix = tile_prefix;
      if (tile == gridDim.x - 1 && p.carry_out != nullptr) {
        *p.carry_out = Canonical(Operator::Combine(tile_prefix, thread.aggregate));
      }
    }
  }
  __syncthreads();

  // Scan each run from what stands before it. A thread overwrites its own run only.
  T prefix = Operator::Combine(s_tile_prefix, thread.exclusive);
#pragma unroll
  for (int i = 0; i < Shape::kItemsPerThread; ++i) {
    const T inclusive = Operator::Combine(prefix, items[i]);
    s_run[i] = Canonical(p.exclusive ? prefix : inclusive);
    prefix = inclusive;
  }
  __syncthreads();
  StoreTile(TileView<T>(p.out, p.num_items, tile_begin, p.reverse), num_valid, s_items);
}

template <class T>
cudaError_t LaunchScan(const ScanArgs& args, LaunchContext* context) {
  uint32_t num_tiles = 0;
  std::byte* d_scratch = nullptr;
  ScanParams<T> params = {.in = static_cast<const T*>(args.in),
                          .out = static_cast<T*>(args.out),
                          .num_items = args.num_items,
                          .init = args.init.As<T>(),
                          .neutral = Neutral(args.op, args.dtype).template As<T>(),
                          .carry_in = static_cast<const T*>(args.carry_in),
                          .carry_out = static_cast<T*>(args.carry_out),
                          .exclusive = args.kind == ScanKind::kExclusive,
                          .reverse = args.reverse,
                          .states = {}};
  cudaError_t error = CountTiles(args.num_items, TileShape<T>::kTileItems, &num_tiles);
  if (error == cudaSuccess) error = context->Scratch(TileStates<T>::SizeBytes(num_tiles), &d_scratch);
  if (error == cudaSuccess) error = TileStates<T>::Create(d_scratch, num_tiles, context->stream, &params.states);
  if (error != cudaSuccess) return error;
  return VisitOp<T>(args.op, [&](auto op) {
    return Launch(ScanKernel<T, decltype(op)::kValue>, num_tiles, TileShape<T>::kThreads, context->stream, params);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SCAN_CUH_
