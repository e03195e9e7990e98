// The reduce kernels of the 2-byte integers.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<int16_t, int16_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint16_t, uint16_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<int16_t, int32_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<int16_t, int64_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint16_t, uint32_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint16_t, uint64_t>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
