// Differences on the CPU: blocks run independently, since each needs only one element of the block before.
#ifndef PREFIXD_KERNELS_CPU_DIFFERENCE_H_
#define PREFIXD_KERNELS_CPU_DIFFERENCE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunDifference(const DifferenceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_DIFFERENCE_H_
