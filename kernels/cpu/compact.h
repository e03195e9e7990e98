// Stable compaction on the CPU: count what every block keeps, add up, gather every block at its place.
#ifndef PREFIXD_KERNELS_CPU_COMPACT_H_
#define PREFIXD_KERNELS_CPU_COMPACT_H_

#include "kernels/cpu/parallel.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunCompact(const CompactArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_COMPACT_H_
