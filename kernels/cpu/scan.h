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
// Results of an array go past the caches by themselves from here on: who writes there waits for the last line. Measured
// with 1 and with 4 KiB: the shorter lose a third by it.
inline constexpr uint64_t kMinStreamBytes = uint64_t{4} << 10;

// As RunScan, of an array among others. all_bytes: what is read and written with it, of the others too.
Work RunScanAmong(const Kernels& kernels, const ScanArgs& args, uint64_t all_bytes);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SCAN_H_
