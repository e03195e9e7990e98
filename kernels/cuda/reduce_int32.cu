// The reduce kernels of the 4-byte integers.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<int32_t, int32_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint32_t, uint32_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<int32_t, int64_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint32_t, uint64_t>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
