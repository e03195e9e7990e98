// CUB's reduce of the 4-byte integers.
#include "kernels/yardsticks/cub/cub_reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubReduce<int32_t, int32_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint32_t, uint32_t>(const ReduceArgs& args, LaunchContext* context,
                                                         uint64_t* num_launches);
template cudaError_t LaunchCubReduce<int32_t, int64_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint32_t, uint64_t>(const ReduceArgs& args, LaunchContext* context,
                                                         uint64_t* num_launches);

}  // namespace prefixd::cuda
