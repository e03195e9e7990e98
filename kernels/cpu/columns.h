// Scans, reduces and differences of batches whose arrays are interleaved: of the columns of a matrix, on all cores.
#ifndef PREFIXD_KERNELS_CPU_COLUMNS_H_
#define PREFIXD_KERNELS_CPU_COLUMNS_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK; several arrays.
// Cost:    reads n, writes n; all cores. A core has a strip of columns, of two lines of the cache or more in a row; or
//          some rows (few_columns.h, column_tiles.h).
Work RunColumnScan(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n, writes a value for each column. Cores as above. Needs: args.values, and items.
Work RunColumnReduce(const Kernels& kernels, const ReduceArgs& args);
// Cost:    reads n and, mostly from the cache, n again, writes n; all cores.
Work RunColumnDifference(const Kernels& kernels, const DifferenceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_COLUMNS_H_
