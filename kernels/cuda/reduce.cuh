// Reduce, strategy "single_launch": which of the three kernels runs. All give the bits of kernels/NUMERICS.md.
#ifndef PREFIXD_KERNELS_CUDA_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_REDUCE_CUH_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ring_reduce.cuh"
#include "kernels/cuda/tile_reduce.cuh"

namespace prefixd::cuda {

// Up to here one block is faster than many.
inline constexpr uint64_t kBlockReduceItems = 2 * kTileItems;
// From here on the ring is faster than tiles in registers.
inline constexpr uint64_t kRingReduceMinBytes = uint64_t{1} << 20;

template <class T>
cudaError_t LaunchReduce(const ReduceArgs& args, LaunchContext* context) {
  ReduceParams<T, T> params = {.in = static_cast<const T*>(args.in),
                               .num_items = args.num_items,
                               .first_item = args.first_item,
                               .num_tiles = 0,
                               .neutral = Neutral(args.op, args.dtype).template As<T>(),
                               .aligned = false,
                               .init = args.init,
                               .state_in = args.state_in,
                               .state_out = args.state_out,
                               .states = {}};
  params.aligned = HasAlignedRuns(params.in);
  return VisitOp<T>(args.op, [&](auto tag) {
    constexpr Op kOp = decltype(tag)::kValue;
    using Operator = Operator<kOp, T>;
    using Shape = RingReduceShape<T>;
    constexpr int kWords = kStateWords<typename Operator::Item>;
    if (args.num_arrays > 1 && args.num_items * sizeof(T) % alignof(Run<T>) != 0) params.aligned = false;
    if (args.num_arrays > 1 || args.num_items <= kBlockReduceItems) {
      const uint64_t num_leaves = (args.num_items + kLeafItems - 1) / kLeafItems;
      const auto num_warps = static_cast<uint32_t>(std::clamp<uint64_t>(num_leaves, 1, TileShape::kWarps));
      return Launch(BlockReduceKernel<T, T, kOp>, static_cast<uint32_t>(args.num_arrays), num_warps * kWarpThreads,
                    context->stream, params);
    }
    const size_t shared_bytes = sizeof(RingReduceShared<T, Operator>);
    const bool in_ring = params.aligned && args.num_items * sizeof(T) >= kRingReduceMinBytes &&
                         context->bulk_shared_bytes >= shared_bytes;
    const int ticket_tiles = in_ring ? Shape::kTicketTiles : 1;
    cudaError_t error = CountTiles(args.num_items, uint64_t{kTileItems} * ticket_tiles, &params.num_tiles);
    if (error == cudaSuccess) {
      error = MakeStates(uint64_t{params.num_tiles} * ticket_tiles * kWords, context, &params.states);
    }
    if (error != cudaSuccess) return error;
    const uint32_t blocks_per_multiprocessor = in_ring ? 1 : kTileReduceBlocksPerMultiprocessor;
    const uint32_t num_blocks =
        std::min<uint32_t>(params.num_tiles, blocks_per_multiprocessor * context->num_multiprocessors);
    if (in_ring) {
      return Launch(RingReduceKernel<T, T, kOp>, num_blocks, Shape::kThreads, context->stream, params, shared_bytes);
    }
    return Launch(TileReduceKernel<T, T, kOp>, num_blocks, TileShape::kThreads, context->stream, params);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_REDUCE_CUH_
