// Scan and reduce, strategy "onetbb": tbb::parallel_scan and tbb::parallel_reduce, with plain loops for bodies.
//
// The library cuts an array into stretches as cores come free. A scan reads a stretch twice where its sum was needed
// before it could be written, and once elsewhere. Sums of floats may differ between runs. Source: oneTBB.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_ONETBB_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_ONETBB_H_

#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// The rows of Device::Algorithms.
std::vector<AlgorithmInfo> OneTbbAlgorithms();

// Needs:   Validate(args) is OK, kTextbooksServe the combination.
Work ScanOneTbb(const ScanArgs& args);
Work ReduceOneTbb(const ReduceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_ONETBB_H_
