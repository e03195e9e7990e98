// What CUDA adds to scans for the indices of extrema, for the Lane: see args/extrema.h.
#ifndef PREFIXD_KERNELS_CUDA_EXTREMA_H_
#define PREFIXD_KERNELS_CUDA_EXTREMA_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/args/extrema.h"
#include "kernels/cuda/launch.h"

namespace prefixd::cuda {

// Each needs the lane's device to be current, and items. Enqueues NumLaunches kernels.
cudaError_t LaunchMarks(const MarkArgs& args, LaunchContext* context);
// The first items of segments are marked by a kernel of their own.
inline uint64_t NumLaunches(const MarkArgs& args) { return args.offsets != nullptr && !args.marks_equals ? 2 : 1; }

// Writes carry_out of a scan with indices that has run. One kernel.
cudaError_t LaunchExtremumCarry(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_EXTREMA_H_
