// Reduce-then-scan on the CPU: reduce every block, fold the aggregates in order, scan every block behind its prefix.
// Reads twice, writes once; reads once where one block holds all.
#ifndef PREFIXD_KERNELS_CPU_SCAN_H_
#define PREFIXD_KERNELS_CPU_SCAN_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunScan(const ScanArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SCAN_H_
