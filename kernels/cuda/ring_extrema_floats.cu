// The kernels of scans with indices that go through the ring: the floating-point types.
#include "kernels/cuda/ring_extrema.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchRingExtremaOf<Float16>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchRingExtremaOf<BFloat16>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchRingExtremaOf<float>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchRingExtremaOf<double>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
