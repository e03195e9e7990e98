// The reduce kernels of the floating-point types.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<float, float>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<double, double>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<float, double>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
