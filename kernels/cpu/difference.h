// Difference on the CPU: every part by itself, with its neighbour's element at the edge.
#ifndef PREFIXD_KERNELS_CPU_DIFFERENCE_H_
#define PREFIXD_KERNELS_CPU_DIFFERENCE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunDifference(const Kernels& kernels, const DifferenceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_DIFFERENCE_H_
