// CUB's scan of the floating-point types.
#include "kernels/yardsticks/cub/cub_scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubScan<float, float>(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template cudaError_t LaunchCubScan<double, double>(const ScanArgs& args, LaunchContext* context,
                                                   uint64_t* num_launches);
template cudaError_t LaunchCubScan<float, double>(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);

}  // namespace prefixd::cuda
