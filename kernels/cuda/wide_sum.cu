// The kernels of sums in more precision than their elements'.
#include "kernels/cuda/wide_sum.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchWideScan<float>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchWideScan<double>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchWideReduce<float>(const ReduceArgs& args, LaunchContext* context);
template cudaError_t LaunchWideReduce<double>(const ReduceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
