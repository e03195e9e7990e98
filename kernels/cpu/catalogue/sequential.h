// "sequential", of scan, reduce and compact: one core, one loop, one element after the other.
//
// Work n, depth n; a scan moves 2n, a reduce n, a compact n and what is kept: nothing can do with less work or traffic,
// and nothing has more depth. What every other algorithm is to be compared with, and exact to say: floating-point
// operands combine as a left fold, start op in[0] op in[1] ..., which is not the order of NUMERICS.md.
// Source: text 004 (sequential_sum), and 000, 002, 003 in words. 004 adds up in a float that starts at 0, so that a sum
// of -0.0 comes out +0.0; here the start is the caller's.
#ifndef PREFIXD_KERNELS_CPU_CATALOGUE_SEQUENTIAL_H_
#define PREFIXD_KERNELS_CPU_CATALOGUE_SEQUENTIAL_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work ScanSequentially(const ScanArgs& args);
Work ReduceSequentially(const ReduceArgs& args);
Work CompactSequentially(const CompactArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_CATALOGUE_SEQUENTIAL_H_
