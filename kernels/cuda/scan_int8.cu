// The scan kernels of the 1-byte integers.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<int8_t, int8_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint8_t, uint8_t>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
