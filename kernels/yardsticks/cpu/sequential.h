// Scan, reduce and compact, strategy "sequential": one core, one loop, one element after the other.
//
// Work n, depth n; a scan moves 2n, a reduce n, a compact n and what is kept: nothing can do with less work or traffic,
// and nothing has more depth. It is what every other algorithm is to be compared with, and its order is simple to say:
// floating-point operands combine as a left fold, start op in[0] op in[1] ..., which is not the order of NUMERICS.md.
// Source: Note and Save (sequential_sum); Funktor, Hadwiger and Iriscores in words. Note and Save adds up in a float
// that starts at 0, so that a sum of -0.0 comes out +0.0; here the start is the caller's.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_SEQUENTIAL_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_SEQUENTIAL_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work ScanSequentially(const ScanArgs& args);
Work ReduceSequentially(const ReduceArgs& args);
Work CompactSequentially(const CompactArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_SEQUENTIAL_H_
