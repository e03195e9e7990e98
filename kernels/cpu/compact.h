// Stable compaction on the CPU: a bit for each item of a part says whether it is kept, and their number, added up along
// the parts as in a scan, where the part's go.
#ifndef PREFIXD_KERNELS_CPU_COMPACT_H_
#define PREFIXD_KERNELS_CPU_COMPACT_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunCompact(const Kernels& kernels, const CompactArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_COMPACT_H_
