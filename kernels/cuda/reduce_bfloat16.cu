// The reduce kernels of bf16.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<BFloat16, BFloat16>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<BFloat16, float>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
