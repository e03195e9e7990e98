// The reduce kernels of the 4-byte integers with wider results.
#include "kernels/cuda/reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchReduce<int32_t, int64_t>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchReduce<uint32_t, uint64_t>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
