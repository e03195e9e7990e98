// Reduce, strategy "single_launch": which of the kernels runs. All give the bits of kernels/NUMERICS.md.
#ifndef PREFIXD_KERNELS_CUDA_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_REDUCE_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/column_reduce.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/range_reduce.cuh"
#include "kernels/cuda/ring_reduce.cuh"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda/segment_reduce.cuh"
#include "kernels/cuda/tile_reduce.cuh"

namespace prefixd::cuda {

// Up to here one block is faster than many.
inline constexpr uint64_t kBlockReduceItems = 2 * kTileItems;
// From here on the ring is faster than tiles in registers.
inline constexpr uint64_t kRingReduceMinBytes = uint64_t{1} << 20;

template <class In, class Out, Op kOp>
cudaError_t LaunchRingReduce(ReduceParams<In, Out>& params, LaunchContext* context) {
  using Shape = RingReduceShape<In>;
  using Operator = Operator<kOp, Out>;
  const cudaError_t error = PrepareTickets<typename Operator::Item>(
      Shape::kTicketItems, RingReduce<In, Out, kOp>::kTicketStates, context, &params);
  if (error != cudaSuccess) return error;
  const auto num_blocks = std::min<uint32_t>(params.num_tiles, context->num_multiprocessors);
  return Launch(RingReduceKernel<In, Out, kOp>, num_blocks, Shape::kThreads, context->stream, params,
                sizeof(RingReduceShared<In, Operator>));
}

template <class In, class Out, Op kOp>
cudaError_t LaunchReduceOf(const ReduceArgs& args, LaunchContext* context) {
  using Operator = Operator<kOp, Out>;
  if (SegmentReduceServes(args)) return LaunchSegmentReduce<In, Out, kOp>(args, context);
  if (args.values != nullptr) {
    // No items: nothing is interleaved.
    if (args.order != BatchOrder::kOneByOne && args.num_items > 0) {
      return LaunchColumnReduce<In, Out, kOp>(args, context);
    }
    if (RangesReduce(args) && !AreShortRows<Operator, In>(args)) return LaunchRangeReduce<In, Out, kOp>(args, context);
    return LaunchRowReduce<In, Out, kOp>(args, context);
  }
  ReduceParams<In, Out> params = ReduceParamsOf<In, Out, kOp>(args);
  params.aligned = HasAlignedRuns(params.in);
  if (args.num_arrays > 1 && args.num_items * sizeof(In) % alignof(Run<In>) != 0) params.aligned = false;
  if (args.num_arrays > 1 || args.num_items <= kBlockReduceItems) {
    const uint64_t num_leaves = (args.num_items + kLeafItems - 1) / kLeafItems;
    const auto num_warps = static_cast<uint32_t>(std::clamp<uint64_t>(num_leaves, 1, TileShape::kWarps));
    return Launch(BlockReduceKernel<In, Out, kOp>, static_cast<uint32_t>(args.num_arrays), num_warps * kWarpThreads,
                  context->stream, params);
  }
  if (args.num_items * sizeof(In) >= kRingReduceMinBytes &&
      context->bulk_shared_bytes >= sizeof(RingReduceShared<In, Operator>)) {
    return LaunchRingReduce<In, Out, kOp>(params, context);
  }
  const cudaError_t error = PrepareTickets<typename Operator::Item>(kTileItems, /*ticket_states=*/1, context, &params);
  if (error != cudaSuccess) return error;
  const auto num_blocks =
      std::min<uint32_t>(params.num_tiles, kTileReduceBlocksPerMultiprocessor * context->num_multiprocessors);
  return Launch(TileReduceKernel<In, Out, kOp>, num_blocks, TileShape::kThreads, context->stream, params);
}

template <class In, class Out>
cudaError_t LaunchReduce(const ReduceArgs& args, LaunchContext* context) {
  return VisitOp<Out>(args.op, [&](auto tag) {
    constexpr Op kOp = decltype(tag)::kValue;
    if constexpr (kIsNarrowFloat<In>) {
      return LaunchReduceOf<In, Accumulator<In>, kOp>(args, context);  // For both types of results.
    } else if constexpr (kWidensElements<kOp> && !std::is_same_v<In, Out>) {
      return LaunchReduceOf<In, Out, kOp>(args, context);
    } else {
      using T = WrappingType<In, kOp>;
      return LaunchReduceOf<T, T, kOp>(args, context);
    }
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_REDUCE_CUH_
