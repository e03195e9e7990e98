// Compact, strategy "chained": which of the two kernels runs. One launch.
#ifndef PREFIXD_KERNELS_CUDA_COMPACT_CUH_
#define PREFIXD_KERNELS_CUDA_COMPACT_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ring_compact.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/tile_compact.cuh"

namespace prefixd::cuda {

// From here on the ring is faster than tiles in registers.
inline constexpr uint64_t kRingCompactMinBytes = uint64_t{256} << 10;

template <class T, Selector kSelector, bool kIndices>
cudaError_t LaunchRingCompact(CompactParams<T>& params, LaunchContext* context) {
  using Shape = RingCompactShape<T, kSelector, kIndices>;
  // Counts items from the multiple of 16 bytes at which bulk copies may begin.
  params.skipped = reinterpret_cast<uintptr_t>(params.in) % kBulkAlignment / sizeof(T);
  params.in -= params.skipped;
  params.num_items += params.skipped;
  params.first_item -= params.skipped;
  const cudaError_t error = PrepareTickets<CountSum::Item>(Shape::kTicketItems, /*ticket_states=*/1, context, &params);
  if (error != cudaSuccess) return error;
  const auto num_blocks = std::min<uint32_t>(params.num_tiles, context->num_multiprocessors);
  return Launch(RingCompactKernel<T, kSelector, kIndices>, num_blocks, Shape::kThreads, context->stream, params,
                sizeof(RingCompactShared<T, kSelector, kIndices>));
}

template <class T, Selector kSelector>
cudaError_t LaunchCompactBy(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context) {
  CompactParams<T> params = MakeCompactParams<T>(args, h_num_kept);
  const bool wants_indices = params.indices_u32 != nullptr || params.indices_u64 != nullptr;
  constexpr size_t kSharedBytes =
      std::max(sizeof(RingCompactShared<T, kSelector, false>), sizeof(RingCompactShared<T, kSelector, true>));
  if (args.num_arrays == 1 && (params.values != nullptr || wants_indices) &&
      params.num_items * sizeof(T) >= kRingCompactMinBytes && context->bulk_shared_bytes >= kSharedBytes) {
    return wants_indices ? LaunchRingCompact<T, kSelector, true>(params, context)
                         : LaunchRingCompact<T, kSelector, false>(params, context);
  }
  using Shape = TileCompactShape<T>;
  const cudaError_t error = PrepareTickets<CountSum::Item>(Shape::kTileItems, /*ticket_states=*/1, context, &params);
  if (error != cudaSuccess) return error;
  if (args.num_arrays > 1) {
    return Launch(TileCompactKernel<T, kSelector, true>, static_cast<uint32_t>(args.num_arrays), Shape::kThreads,
                  context->stream, params);
  }
  const auto num_blocks =
      std::min<uint32_t>(params.num_tiles, Shape::kBlocksPerMultiprocessor * context->num_multiprocessors);
  return Launch(TileCompactKernel<T, kSelector, false>, num_blocks, Shape::kThreads, context->stream, params);
}

template <class T>
cudaError_t LaunchCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context) {
  using Bits = BitsOf<T>;  // A mask does not look at elements.
  switch (args.selector) {
    case Selector::kPredicate:
      return LaunchCompactBy<T, Selector::kPredicate>(args, h_num_kept, context);
    case Selector::kByteMask:
      return LaunchCompactBy<Bits, Selector::kByteMask>(args, h_num_kept, context);
    case Selector::kBitMask:
      return LaunchCompactBy<Bits, Selector::kBitMask>(args, h_num_kept, context);
  }
  FatalValue("LaunchCompact", args.selector);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_COMPACT_CUH_
