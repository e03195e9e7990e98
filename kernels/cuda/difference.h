// Differences on CUDA, for the Lane.
#ifndef PREFIXD_KERNELS_CUDA_DIFFERENCE_H_
#define PREFIXD_KERNELS_CUDA_DIFFERENCE_H_

#include <cuda_runtime.h>

#include "kernels/cuda/launch.h"

namespace prefixd::cuda {

// Enqueues one kernel. Needs: Validate(args) was OK, the lane's device is current.
cudaError_t LaunchDifference(const DifferenceArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_DIFFERENCE_H_
