// CUB's scan of the 4-byte integers.
#include "kernels/yardsticks/cub/cub_scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubScan<int32_t, int32_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint32_t, uint32_t>(const ScanArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubScan<int32_t, int64_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint32_t, uint64_t>(const ScanArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);

}  // namespace prefixd::cuda
