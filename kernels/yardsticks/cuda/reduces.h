// The textbooks' reduces and compacts; textbooks.cu chooses. The arguments are those of LaunchTextbookReduce and
// LaunchTextbookCompact.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_REDUCES_H_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_REDUCES_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/device.h"
#include "kernels/yardsticks/cuda/textbooks.h"

namespace prefixd::cuda {

// tree_interleaved, tree_sequential, warp_shuffle.
template <class T>
cudaError_t LaunchTreeReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);
// two_pass, kahan.
template <class T>
cudaError_t LaunchTwoPassReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchAtomicReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchThrustReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);

template <class T>
cudaError_t LaunchThreeKernelCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                     uint64_t* num_launches);
template <class T>
cudaError_t LaunchAtomicCounterCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                       uint64_t* num_launches);
template <class T>
cudaError_t LaunchThrustCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                uint64_t* num_launches);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_REDUCES_H_
