// The textbooks' scans, one for each strategy; textbooks.cu chooses. The arguments are those of LaunchTextbookScan.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_SCANS_H_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_SCANS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/device.h"
#include "kernels/yardsticks/cuda/textbooks.h"

namespace prefixd::cuda {

template <class T>
cudaError_t LaunchNaiveScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchHillisSteeleGlobalScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchThreePhaseScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchGridSyncScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchChainedSerialScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchChainedScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchThrustScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);

// The longest array for which a quadratic algorithm is run: 3.4e10 operations, 9 ms on an H200.
inline constexpr uint64_t kMaxNaiveItems = uint64_t{1} << 18;

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_SCANS_H_
