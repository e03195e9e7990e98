// The glue on CUDA, for the Lane.
#ifndef PREFIXD_KERNELS_CUDA_GLUE_H_
#define PREFIXD_KERNELS_CUDA_GLUE_H_

#include <cuda_runtime.h>

#include "kernels/cuda/launch.h"

namespace prefixd::cuda {

// Kernels of a LaunchFindRuns.
inline constexpr uint64_t kFindRunsLaunches = 3;

// Each enqueues one kernel, but LaunchFindRuns. Needs: Validate(args) was OK, the lane's device is current; items, but
// for a gather, a scatter or runs; no IsCopy.
cudaError_t LaunchFill(const FillArgs& args, LaunchContext* context);
cudaError_t LaunchMap(const MapArgs& args, LaunchContext* context);
cudaError_t LaunchGather(const GatherArgs& args, LaunchContext* context);
cudaError_t LaunchScatter(const ScatterArgs& args, LaunchContext* context);
cudaError_t LaunchCount(const CountArgs& args, LaunchContext* context);
cudaError_t LaunchFindRuns(const RunsArgs& args, LaunchContext* context);
cudaError_t LaunchTranspose(const TransposeArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_GLUE_H_
