// What CUDA adds to scans for the indices of extrema, for the Lane: see args/extrema.h.
#ifndef PREFIXD_KERNELS_CUDA_EXTREMA_H_
#define PREFIXD_KERNELS_CUDA_EXTREMA_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/args/extrema.h"
#include "kernels/cuda/launch.h"

namespace prefixd::cuda {

// Whether one launch does all of a scan with indices, for which Validate is OK: ring_extrema.cuh.
bool RingExtremaServe(const ScanArgs& args, const LaunchContext& context);
// Needs: they serve, and the lane's device is current. Enqueues one kernel.
cudaError_t LaunchRingExtrema(const ScanArgs& args, LaunchContext* context);
// What a block of it takes of shared memory, at most.
inline constexpr size_t kRingExtremaSharedBytes = size_t{220} << 10;

// Each needs the lane's device to be current, and items. Enqueues NumLaunches kernels.
cudaError_t LaunchMarks(const MarkArgs& args, LaunchContext* context);
// The first items of segments are marked by a kernel of their own.
inline uint64_t NumLaunches(const MarkArgs& args) { return args.offsets != nullptr && !args.marks_equals ? 2 : 1; }

// Writes carry_out of a scan with indices that has run. One kernel.
cudaError_t LaunchExtremumCarry(const ScanArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_EXTREMA_H_
