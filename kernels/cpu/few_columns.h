// Scans and reduces down a few long columns, which don't fill vectors, or are too few for threads of their own: parts
// of the rows are made columns in the second-level cache, and threads take one part after the other, as of one array.
//
// Threads: those of parallel.h. A thread has buffers of its own, some mebibytes; a call returns when all is written.
#ifndef PREFIXD_KERNELS_CPU_FEW_COLUMNS_H_
#define PREFIXD_KERNELS_CPU_FEW_COLUMNS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Whether columns are few and long.
bool AreFewColumns(const ScanArgs& args);
bool AreFewColumns(const ReduceArgs& args);

// Needs:   Validate(args) is OK; interleaved arrays; AreFewColumns(args).
// Cost:    reads n, writes n, and in the caches both twice more; all cores.
void ScanFewColumns(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n, writes a value for each column, and n in the caches; all cores. Needs: args.values too.
void ReduceFewColumns(const Kernels& kernels, const ReduceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_FEW_COLUMNS_H_
