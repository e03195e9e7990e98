// Scan, reduce and compact, strategy "std": the parallel algorithms of the C++ standard library, which in libstdc++ run
// on oneTBB.
//
// Scan is std::transform_inclusive_scan or transform_exclusive_scan; reduce is std::reduce, or min_element and
// max_element for the position of an extremum; compact is std::copy_if. Cores take stretches as they come free, so sums
// of floats may differ between runs. Source: libstdc++.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_STD_PAR_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_STD_PAR_H_

#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// The rows of Device::Algorithms.
std::vector<AlgorithmInfo> StdAlgorithms();

// Needs:   Validate(args) is OK, the row serves the combination.
// Cost:    where it is exclusive and in place, memory for a copy of the items.
Work ScanStd(const ScanArgs& args);
Work ReduceStd(const ReduceArgs& args);
// Cost:    a byte of memory for each element.
Work CompactStd(const CompactArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_STD_PAR_H_
