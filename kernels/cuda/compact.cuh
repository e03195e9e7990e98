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

template <class T, Selector kSelector>
cudaError_t LaunchCompactBy(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context) {
  CompactParams<T> params = MakeCompactParams<T>(args, h_num_kept);
  if constexpr (kSelector != Selector::kBitMask) {
    using Shape = RingCompactShape<T, kSelector>;
    using Shared = RingCompactShared<T, kSelector>;
    if (args.num_arrays == 1 && params.values != nullptr && params.indices_u32 == nullptr &&
        params.indices_u64 == nullptr && params.num_items * sizeof(T) >= kRingCompactMinBytes &&
        IsBulkAligned(params.in) && IsBulkAligned(params.mask) && context->bulk_shared_bytes >= sizeof(Shared)) {
      const cudaError_t error =
          PrepareTickets<CountSum::Item>(Shape::kTicketItems, /*ticket_states=*/1, context, &params);
      if (error != cudaSuccess) return error;
      const auto num_blocks = std::min<uint32_t>(params.num_tiles, context->num_multiprocessors);
      return Launch(RingCompactKernel<T, kSelector>, num_blocks, Shape::kThreads, context->stream, params,
                    sizeof(Shared));
    }
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
