// The algorithms of the textbooks, one file each: to learn from, and to compare the default with. No request needs one.
//
// A scan has two axes. A tile scan (hillis_steele.cuh .. warp_shuffle.cuh) is how a block scans a tile in shared
// memory; a strategy (three_phase.cuh, grid_sync.cu, chained_serial.cu, chained.cu) is how tiles are joined, whichever
// of the tile scans they were scanned by. The rest have one axis: naive, hillis_steele_global and thrust for scans; for
// reduce tree_reduce.cu, two_pass.cu and atomic_reduce.cu; for compact three_kernel.cu and atomic_counter.cu.
//
// They serve elements of 4 and 8 bytes, sums, min and max, forwards and backwards, and one array at a time. Elements
// combine in an order of their own, not that of kernels/NUMERICS.md: always the earlier on the left, but for the
// reduces tree_sequential and atomic, which need an operator that commutes.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_TEXTBOOKS_H_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_TEXTBOOKS_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/device.h"

namespace prefixd::cuda {

// X(C++ type) for every element type that is served: those of kTextbooksServe (kernels/yardsticks/serves.h).
#define PREFIXD_FOR_EACH_TEXTBOOK_TYPE(X) \
  X(int32_t)                              \
  X(uint32_t)                             \
  X(int64_t)                              \
  X(uint64_t)                             \
  X(float)                                \
  X(double)

// The rows of these algorithms, for Device::Algorithms.
std::vector<AlgorithmInfo> TextbookAlgorithms();

// Each function enqueues all that its algorithm launches, and sets *num_launches: kernels, copies and memsets count.
// Needs: T is served; args are resolved and validated, not longer than the algorithm's limit; num_arrays is 1.
template <class T>
cudaError_t LaunchTextbookScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches);
template <class T>
cudaError_t LaunchTextbookReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches);
// The number kept also goes to h_num_kept, in pinned memory.
template <class T>
cudaError_t LaunchTextbookCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                  uint64_t* num_launches);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_TEXTBOOKS_H_
