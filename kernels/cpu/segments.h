// Scans, reduces and differences of segments: of batches whose arrays stand one by one and differ in length. On all
// cores.
#ifndef PREFIXD_KERNELS_CPU_SEGMENTS_H_
#define PREFIXD_KERNELS_CPU_SEGMENTS_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK; args.offsets, of at least one segment.
// Cost:    reads n and the offsets, writes n. Short segments share vectors (arrays.h).
Work RunSegmentScan(const Kernels& kernels, const ScanArgs& args);
// Cost:    reads n and the offsets, writes a value for each segment. Needs: args.values too.
Work RunSegmentReduce(const Kernels& kernels, const ReduceArgs& args);
// Cost:    reads n and the offsets, writes n, and an item of each segment once more.
Work RunSegmentDifference(const Kernels& kernels, const DifferenceArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SEGMENTS_H_
