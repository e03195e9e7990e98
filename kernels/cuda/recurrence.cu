// The recurrence kernels.
#include "kernels/cuda/recurrence.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchRecurrence<float>(const ScanArgs& args, LaunchContext* context);
template cudaError_t LaunchRecurrence<double>(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda
