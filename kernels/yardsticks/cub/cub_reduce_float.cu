// CUB's reduce of the floating-point types.
#include "kernels/yardsticks/cub/cub_reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubReduce<float, float>(const ReduceArgs& args, LaunchContext* context,
                                                   uint64_t* num_launches);
template cudaError_t LaunchCubReduce<double, double>(const ReduceArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubReduce<float, double>(const ReduceArgs& args, LaunchContext* context,
                                                    uint64_t* num_launches);

}  // namespace prefixd::cuda
