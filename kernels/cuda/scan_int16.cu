// The scan kernels of the 2-byte integers.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<int16_t, int16_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint16_t, uint16_t>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
