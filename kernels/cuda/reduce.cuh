// Reduce, strategy "single_launch": every block reduces a contiguous range of tiles, and the block that finishes last
// joins the blocks' aggregates. Elements, threads, tiles and blocks are always combined in their order, and which
// items a block gets depends on the size and the card alone: so do the bits of the result.
//
// Traffic: reads n, writes next to nothing; the last block reads one item per block.
// Source: the single-launch idea is the CUDA programming guide's threadFenceReduction; here with acquire and release.
#ifndef PREFIXD_KERNELS_CUDA_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_REDUCE_CUH_

#include <algorithm>
#include <cstdint>
#include <cuda/atomic>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_scan.cuh"

namespace prefixd::cuda {

// Enough loads in flight to keep the memory busy, few enough that all blocks are resident at once.
inline constexpr int kReduceBlocksPerMultiprocessor = 6;

// An element that remembers where it was, as ReduceState does.
template <class T>
struct Positioned {
  T value;
  uint64_t position;
};

template <class T>
__device__ Positioned<T> ShuffleUp(Positioned<T> v, int offset) {
  return {ShuffleUp(v.value, offset), ShuffleUp(v.position, offset)};
}

// What a reduce combines: for min and max elements with their positions, the lower of which wins a tie (kNothing, the
// largest, loses it); for the other operators elements alone.
template <Op kOp, class T, bool kPositioned = kOp == Op::kMin || kOp == Op::kMax>
struct Reducer : Operator<kOp, T> {
  using Item = T;
  static __device__ Item Make(T value, uint64_t /*position*/) { return value; }
  static __device__ T ValueOf(Item item) { return item; }
  static __device__ uint64_t PositionOf(Item /*item*/, uint64_t start_position) { return start_position; }
};

template <Op kOp, class T>
struct Reducer<kOp, T, true> {
  using Item = Positioned<T>;
  static __device__ Item Make(T value, uint64_t position) { return {value, position}; }
  static __device__ T ValueOf(Item item) { return item.value; }
  static __device__ uint64_t PositionOf(Item item, uint64_t /*start_position*/) { return item.position; }
  static __device__ Item Combine(Item left, Item right) {
    if (IsPreferred<kOp>(left.value, right.value)) return left;
    if (IsPreferred<kOp>(right.value, left.value)) return right;
    return left.position <= right.position ? left : right;
  }
};

template <class T, Op kOp>
struct ReduceParams {
  const T* in;
  uint64_t num_items;
  uint64_t first_item;
  T neutral;
  ReduceState init;
  const ReduceState* state_in;
  ReduceState* state_out;  // May be state_in.
  typename Reducer<kOp, T>::Item* block_aggregates;
  uint32_t* finished_blocks;  // 0 before and after the launch.
};

// The first of the parts that piece `index` of `num_pieces` gets, when parts are dealt out evenly and in order.
inline __device__ uint64_t FirstPart(uint64_t num_parts, uint32_t num_pieces, uint32_t index) {
  const uint64_t remainder = num_parts % num_pieces;
  return num_parts / num_pieces * index + (index < remainder ? index : remainder);
}

template <class T, Op kOp>
__global__ void __launch_bounds__(TileShape<T>::kThreads, kReduceBlocksPerMultiprocessor)
    ReduceKernel(const ReduceParams<T, kOp> p) {
  using Shape = TileShape<T>;
  using Reducer = Reducer<kOp, T>;
  using Item = typename Reducer::Item;
  __shared__ T s_items[Shape::kTileItems];
  __shared__ Item s_warp_aggregates[Shape::kWarps];
  __shared__ bool s_is_last;
  const Item neutral = Reducer::Make(p.neutral, ReduceState::kNothing);

  // Reduce this block's range of tiles. Two barriers a tile are enough: the one in BlockReduce stands between reading
  // s_items and loading the next tile, the one after LoadTile between the uses of s_warp_aggregates.
  const uint64_t num_tiles = p.num_items / Shape::kTileItems + (p.num_items % Shape::kTileItems != 0 ? 1 : 0);
  const uint64_t end_tile = FirstPart(num_tiles, gridDim.x, blockIdx.x + 1);
  Item block_aggregate = neutral;
  for (uint64_t tile = FirstPart(num_tiles, gridDim.x, blockIdx.x); tile < end_tile; ++tile) {
    const uint64_t tile_begin = tile * Shape::kTileItems;
    const int num_valid = NumValid<T>(p.num_items, tile_begin);
    LoadTile(TileView<const T>(p.in, p.num_items, tile_begin, false), num_valid, p.neutral, s_items);
    __syncthreads();
    Item thread_aggregate = neutral;
#pragma unroll
    for (int i = 0; i < Shape::kItemsPerThread; ++i) {
      const int item = static_cast<int>(threadIdx.x) * Shape::kItemsPerThread + i;
      const uint64_t position = item < num_valid ? p.first_item + tile_begin + item + 1 : ReduceState::kNothing;
      thread_aggregate = Reducer::Combine(thread_aggregate, Reducer::Make(s_items[item], position));
    }
    block_aggregate =
        Reducer::Combine(block_aggregate, BlockReduce<Reducer>(thread_aggregate, neutral, s_warp_aggregates));
  }

  // The last block to arrive has acquired what every other one released; the barrier passes that on to its threads.
  ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_device> finished_blocks(*p.finished_blocks);
  if (threadIdx.x == 0) {
    p.block_aggregates[blockIdx.x] = block_aggregate;
    s_is_last = finished_blocks.fetch_add(1, ::cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (!s_is_last) return;

  // Join the blocks, each thread a run of them.
  Item thread_aggregate = neutral;
  const auto end_block = static_cast<uint32_t>(FirstPart(gridDim.x, Shape::kThreads, threadIdx.x + 1));
  for (auto b = static_cast<uint32_t>(FirstPart(gridDim.x, Shape::kThreads, threadIdx.x)); b < end_block; ++b) {
    thread_aggregate = Reducer::Combine(thread_aggregate, p.block_aggregates[b]);
  }
  const Item aggregate = BlockReduce<Reducer>(thread_aggregate, neutral, s_warp_aggregates);
  if (threadIdx.x == 0) {
    const ReduceState start = p.state_in != nullptr ? *p.state_in : p.init;
    const Item result = Reducer::Combine(Reducer::Make(ValueAs<T>(start.value), start.position), aggregate);
    p.state_out->value = ValueOf(Canonical(Reducer::ValueOf(result)));
    p.state_out->position = Reducer::PositionOf(result, start.position);
    finished_blocks.store(0, ::cuda::memory_order_relaxed);  // The stream orders it before the next launch.
  }
}

template <class T>
cudaError_t LaunchReduce(const ReduceArgs& args, LaunchContext* context) {
  uint32_t num_tiles = 0;
  if (const cudaError_t error = CountTiles(args.num_items, TileShape<T>::kTileItems, &num_tiles); error != cudaSuccess)
    return error;
  const uint32_t num_blocks =
      std::min<uint32_t>(num_tiles, kReduceBlocksPerMultiprocessor * context->num_multiprocessors);
  return VisitOp<T>(args.op, [&](auto op_tag) {
    constexpr Op kOp = decltype(op_tag)::kValue;
    using Item = typename Reducer<kOp, T>::Item;
    std::byte* d_scratch = nullptr;
    if (const cudaError_t error = context->Scratch(num_blocks * sizeof(Item), &d_scratch); error != cudaSuccess) {
      return error;
    }
    const ReduceParams<T, kOp> params = {.in = static_cast<const T*>(args.in),
                                         .num_items = args.num_items,
                                         .first_item = args.first_item,
                                         .neutral = Neutral(args.op, args.dtype).template As<T>(),
                                         .init = args.init,
                                         .state_in = args.state_in,
                                         .state_out = args.state_out,
                                         .block_aggregates = reinterpret_cast<Item*>(d_scratch),
                                         .finished_blocks = context->d_finished_blocks};
    return Launch(ReduceKernel<T, kOp>, num_blocks, TileShape<T>::kThreads, context->stream, params);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_REDUCE_CUH_
