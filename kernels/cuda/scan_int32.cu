// The scan kernels of the 4-byte integers.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<int32_t, int32_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint32_t, uint32_t>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
