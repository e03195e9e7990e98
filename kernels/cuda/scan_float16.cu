// The scan kernels of f16.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<Float16, Float16>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<Float16, float>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
