// Reduce on the CPU: the values of parts, on all threads, then their fold in order. Reads once.
#ifndef PREFIXD_KERNELS_CPU_REDUCE_H_
#define PREFIXD_KERNELS_CPU_REDUCE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunReduce(const Kernels& kernels, const ReduceArgs& args);
// The same into args.values, without a position.
void ReduceToValue(const Kernels& kernels, const ReduceArgs& args);
// The same, on this thread, from values that ScanFunctions::reduce gave: one for each tile, in order, or where the
// order is free one for each part.
void FoldToValue(const Kernels& kernels, const ReduceArgs& args, const void* values, uint64_t num_values);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_REDUCE_H_
