// The reduce kernels of the 1-byte integers.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<int8_t, int8_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint8_t, uint8_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<int8_t, int32_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<int8_t, int64_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint8_t, uint32_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint8_t, uint64_t>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
