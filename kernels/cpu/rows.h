// Scans, reduces and differences of batches whose arrays stand one by one: of the rows of a matrix, on all cores.
#ifndef PREFIXD_KERNELS_CPU_ROWS_H_
#define PREFIXD_KERNELS_CPU_ROWS_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK; arrays one by one, at least one.
// Cost:    reads n, writes n. Short rows share vectors (arrays.h), or are transposed in the cache (short_rows.h).
Work RunRowScan(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n, writes a value for each row. Needs: args.values.
Work RunRowReduce(const Kernels& kernels, const ReduceArgs& args);
// Cost:    reads n, writes n. Short rows pass through the first-level cache.
Work RunRowDifference(const Kernels& kernels, const DifferenceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ROWS_H_
