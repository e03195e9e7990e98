// The scan kernels of the floating-point types.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<float, float>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<double, double>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<float, double>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
