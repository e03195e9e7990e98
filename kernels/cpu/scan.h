// Reduce-then-scan on the CPU: reduce every group, fold their values in order, scan every group behind its prefix.
// Reads twice, writes once; reads once where one group holds all.
#ifndef PREFIXD_KERNELS_CPU_SCAN_H_
#define PREFIXD_KERNELS_CPU_SCAN_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunScan(const ScanArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SCAN_H_
