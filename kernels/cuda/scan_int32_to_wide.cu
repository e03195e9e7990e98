// The scan kernels of the 4-byte integers with wider results.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<int32_t, int64_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint32_t, uint64_t>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
