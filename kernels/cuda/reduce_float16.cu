// The reduce kernels of f16.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<Float16, Float16>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<Float16, float>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
