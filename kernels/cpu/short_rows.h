// Scans and reduces of rows that are too short for vectors of their own: they are made columns, some at a time.
#ifndef PREFIXD_KERNELS_CPU_SHORT_ROWS_H_
#define PREFIXD_KERNELS_CPU_SHORT_ROWS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// The longest rows that the first-level cache has room for, in items.
inline constexpr uint64_t kMaxShortRowItems = 128;

// Needs:   Validate(args) is OK; rows of 1 to kMaxShortRowItems; neither a recurrence nor a wide sum.
// Cost:    reads n, writes n, and in the caches both twice more; all cores.
void ScanShortRows(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n, writes a value for each row. Needs: args.values too.
void ReduceShortRows(const Kernels& kernels, const ReduceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SHORT_ROWS_H_
