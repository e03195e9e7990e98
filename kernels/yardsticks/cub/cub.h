// CUB's algorithms, strategy "cub". The arguments are those of LaunchYardstick.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_H_
#define PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/device.h"

namespace prefixd::cuda {

template <class In, class Out>
cudaError_t LaunchCubScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class In, class Out>
cudaError_t LaunchCubReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchCubCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                             uint64_t* num_launches);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_H_
