// CUB's scan of the 8-byte integers.
#include "kernels/yardsticks/cub/cub_scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubScan<int64_t, int64_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint64_t, uint64_t>(const ScanArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);

}  // namespace prefixd::cuda
