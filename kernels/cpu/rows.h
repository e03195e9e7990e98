// Scans, reduces and differences of batches whose arrays stand one by one: of the rows of a matrix, on all cores.
#ifndef PREFIXD_KERNELS_CPU_ROWS_H_
#define PREFIXD_KERNELS_CPU_ROWS_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK; arrays one by one, at least one.
// Cost:    reads n, writes n. Many short rows are transposed in the cache, so that vectors are full.
Work RunRowScan(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n, writes a value for each row. Needs: args.values.
Work RunRowReduce(const Kernels& kernels, const ReduceArgs& args);
// The same of segments. Needs: args.offsets.
// Cost:    reads n and the offsets, writes n.
Work RunSegmentScan(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n and the offsets, writes a value for each segment. Needs: args.values too.
Work RunSegmentReduce(const Kernels& kernels, const ReduceArgs& args);
// Cost:    reads n, writes n, and the first item of each row once more.
Work RunRowDifference(const Kernels& kernels, const DifferenceArgs& args);
// The same of segments. Needs: args.offsets.
Work RunSegmentDifference(const Kernels& kernels, const DifferenceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_ROWS_H_
