// The scan kernels of the 8-byte integers.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<int64_t, int64_t>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<uint64_t, uint64_t>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
