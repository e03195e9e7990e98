// Reduction on the CPU: reduce every group, fold their values in order. The bits are those of the last element of the
// inclusive scan (scan.h).
#ifndef PREFIXD_KERNELS_CPU_REDUCE_H_
#define PREFIXD_KERNELS_CPU_REDUCE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunReduce(const ReduceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_REDUCE_H_
