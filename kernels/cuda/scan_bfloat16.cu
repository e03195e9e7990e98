// The scan kernels of bf16.
#include "kernels/cuda/scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchScan<BFloat16, BFloat16>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchScan<BFloat16, float>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
