// Scans and reduces down columns that are too few for strips of them to keep all cores busy, and long: threads take
// tiles of rows, in which memory is read line after line.
//
// Threads: those of parallel.h. A call returns when all is written.
#ifndef PREFIXD_KERNELS_CPU_COLUMN_TILES_H_
#define PREFIXD_KERNELS_CPU_COLUMN_TILES_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Whether that is what they are.
bool AreColumnTiles(const ScanArgs& args);
bool AreColumnTiles(const ReduceArgs& args);

// Needs:   Validate(args) is OK; interleaved arrays; AreColumnTiles(args).
// Cost:    reads n twice, writes n; an item and an AnyPrefix for each tile of a column; all cores.
void ScanColumnTiles(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n; an item for each tile of a column; all cores. Needs: args.values too.
void ReduceColumnTiles(const Kernels& kernels, const ReduceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_COLUMN_TILES_H_
