// The chained scan on the CPU: one thread scans an array once, behind what it has added up so far. Several threads take
// parts from a counter; each reduces its part, waits for what stands before it, hands on what stands behind it, and
// scans the part from its cache. Reads once, writes once.
#ifndef PREFIXD_KERNELS_CPU_SCAN_H_
#define PREFIXD_KERNELS_CPU_SCAN_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunScan(const Kernels& kernels, const ScanArgs& args);
// The same of an array among others that are read and written with it, all_bytes together: whether the caches would
// hold its results depends on these.
Work RunScanAmong(const Kernels& kernels, const ScanArgs& args, uint64_t all_bytes);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SCAN_H_
