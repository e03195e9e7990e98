// The scan kernels of the 1-byte integers with wider results.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<int8_t, int32_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<int8_t, int64_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint8_t, uint32_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint8_t, uint64_t>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
