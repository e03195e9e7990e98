// The algorithms to compare the CUDA device's defaults with: CUB's, Thrust's and those of the textbooks. No request
// needs one. They take longer to compile than all other kernels: in a build with PREFIXD_YARDSTICKS=OFF
// no_yardsticks.cc stands in for them.
#ifndef PREFIXD_KERNELS_YARDSTICKS_YARDSTICKS_H_
#define PREFIXD_KERNELS_YARDSTICKS_YARDSTICKS_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "kernels/algorithm_info.h"
#include "kernels/cuda/launch.h"
#include "kernels/device.h"

namespace prefixd::cuda {

// The rows of the yardsticks, for Device::Algorithms. None in a build without yardsticks.
std::vector<AlgorithmInfo> YardstickAlgorithms();

// Each function enqueues all that args.algorithm launches, and sets *num_launches: kernels, copies and memsets count.
// Needs: args are validated; their algorithm is resolved, is one of YardstickAlgorithms, and serves their types and
// operator; num_items is within the algorithm's limit, and num_arrays is 1.
cudaError_t LaunchYardstick(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
cudaError_t LaunchYardstick(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);
// The number kept also goes to h_num_kept, in pinned memory.
cudaError_t LaunchYardstick(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                            uint64_t* num_launches);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_YARDSTICKS_H_
