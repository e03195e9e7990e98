// What the CUDA device serves, for Device::Algorithms: the defaults and the yardsticks.
#ifndef PREFIXD_KERNELS_CUDA_ALGORITHMS_H_
#define PREFIXD_KERNELS_CUDA_ALGORITHMS_H_

#include <vector>

#include "kernels/device.h"

namespace prefixd::cuda {

// By primitive; the default of each comes first.
std::vector<AlgorithmInfo> ServedAlgorithms();

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ALGORITHMS_H_
