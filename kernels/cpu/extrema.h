// What the CPU adds to scans for the indices of extrema: see args/extrema.h.
#ifndef PREFIXD_KERNELS_CPU_EXTREMA_H_
#define PREFIXD_KERNELS_CPU_EXTREMA_H_

#include "kernels/args/extrema.h"
#include "kernels/cpu/parallel.h"

namespace prefixd::cpu {

// Cost: reads the extrema, or these and the elements; writes the marks; all cores.
Work MarkExtrema(const MarkArgs& args);

// The carry of a scan with indices that has run, of at least one item.
ExtremumCarry CarryOf(const ScanArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_EXTREMA_H_
