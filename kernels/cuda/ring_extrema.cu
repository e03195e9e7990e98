// Which scans with indices go through the ring, and the kernels of the integers.
#include "kernels/cuda/ring_extrema.cuh"

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/extrema.h"
#include "kernels/types.h"

namespace prefixd::cuda {
namespace {

// From here on one launch through the ring, which starts slowly, is to be faster than the three steps.
constexpr uint64_t kRingExtremaMinItems = uint64_t{16} << 10;

}  // namespace

bool RingExtremaServe(const ScanArgs& args, const LaunchContext& context) {
  return args.num_arrays == 1 && args.offsets == nullptr && !args.reverse && IsBulkAligned(args.in) &&
         IsBulkAligned(args.out) && IsBulkAligned(args.indices) && args.num_items >= kRingExtremaMinItems &&
         args.num_items <= std::numeric_limits<uint32_t>::max() - 1 &&
         context.bulk_shared_bytes >= kRingExtremaSharedBytes;
}

extern template cudaError_t LaunchRingExtremaOf<Float16>(const ScanArgs& args, LaunchContext* context);
extern template cudaError_t LaunchRingExtremaOf<BFloat16>(const ScanArgs& args, LaunchContext* context);
extern template cudaError_t LaunchRingExtremaOf<float>(const ScanArgs& args, LaunchContext* context);
extern template cudaError_t LaunchRingExtremaOf<double>(const ScanArgs& args, LaunchContext* context);

cudaError_t LaunchRingExtrema(const ScanArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Unsigned = typename std::conditional_t<kIsFloating<T>, std::type_identity<T>, std::make_unsigned<T>>::type;
    return LaunchRingExtremaOf<Unsigned>(args, context);
  });
}

}  // namespace prefixd::cuda
