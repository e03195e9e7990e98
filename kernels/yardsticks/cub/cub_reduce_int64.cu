// CUB's reduce of the 8-byte integers.
#include "kernels/yardsticks/cub/cub_reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubReduce<int64_t, int64_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint64_t, uint64_t>(const ReduceArgs& args, LaunchContext* context,
                                                         uint64_t* num_launches);

}  // namespace prefixd::cuda
