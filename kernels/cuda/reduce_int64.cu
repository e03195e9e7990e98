// The reduce kernels of the 8-byte integers.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<int64_t, int64_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint64_t, uint64_t>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
