// The glue on the CPU: every part of an array by itself.
#ifndef PREFIXD_KERNELS_CPU_GLUE_H_
#define PREFIXD_KERNELS_CPU_GLUE_H_

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Needs:   Validate(args) is OK.
Work RunFill(const Kernels& kernels, const FillArgs& args);
Work RunMap(const Kernels& kernels, const MapArgs& args);
Work RunGather(const Kernels& kernels, const GatherArgs& args);
Work RunScatter(const Kernels& kernels, const ScatterArgs& args);
Work RunCount(const Kernels& kernels, const CountArgs& args);
Work RunFindRuns(const Kernels& kernels, const RunsArgs& args);
Work RunTranspose(const Kernels& kernels, const TransposeArgs& args);

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_GLUE_H_
