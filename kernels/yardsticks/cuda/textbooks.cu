// Which of the textbooks' algorithms runs.
#include "kernels/yardsticks/cuda/textbooks.h"

#include "kernels/yardsticks/cuda/reduces.h"
#include "kernels/yardsticks/cuda/scans.h"

namespace prefixd::cuda {

template <class T>
cudaError_t LaunchTextbookScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  switch (args.algorithm.strategy) {
    case Strategy::kNaive:
      return LaunchNaiveScan<T>(args, context, num_launches);
    case Strategy::kHillisSteeleGlobal:
      return LaunchHillisSteeleGlobalScan<T>(args, context, num_launches);
    case Strategy::kThreePhase:
      return LaunchThreePhaseScan<T>(args, context, num_launches);
    case Strategy::kGridSync:
      return LaunchGridSyncScan<T>(args, context, num_launches);
    case Strategy::kChainedSerial:
      return LaunchChainedSerialScan<T>(args, context, num_launches);
    case Strategy::kChained:
      return LaunchChainedScan<T>(args, context, num_launches);
    case Strategy::kThrust:
      return LaunchThrustScan<T>(args, context, num_launches);
    default:
      FatalValue("LaunchTextbookScan", args.algorithm.strategy);
  }
}

template <class T>
cudaError_t LaunchTextbookReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  switch (args.algorithm.strategy) {
    case Strategy::kTreeInterleaved:
    case Strategy::kTreeSequential:
    case Strategy::kWarpShuffle:
      return LaunchTreeReduce<T>(args, context, num_launches);
    case Strategy::kTwoPass:
    case Strategy::kKahan:
      return LaunchTwoPassReduce<T>(args, context, num_launches);
    case Strategy::kAtomic:
      return LaunchAtomicReduce<T>(args, context, num_launches);
    case Strategy::kThrust:
      return LaunchThrustReduce<T>(args, context, num_launches);
    default:
      FatalValue("LaunchTextbookReduce", args.algorithm.strategy);
  }
}

template <class T>
cudaError_t LaunchTextbookCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                  uint64_t* num_launches) {
  switch (args.algorithm.strategy) {
    case Strategy::kThreeKernel:
      return LaunchThreeKernelCompact<T>(args, h_num_kept, context, num_launches);
    case Strategy::kAtomicCounter:
      return LaunchAtomicCounterCompact<T>(args, h_num_kept, context, num_launches);
    case Strategy::kThrust:
      return LaunchThrustCompact<T>(args, h_num_kept, context, num_launches);
    default:
      FatalValue("LaunchTextbookCompact", args.algorithm.strategy);
  }
}

#define PREFIXD_INSTANTIATE(T)                                                                \
  template cudaError_t LaunchTextbookScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);     \
  template cudaError_t LaunchTextbookReduce<T>(const ReduceArgs&, LaunchContext*, uint64_t*); \
  template cudaError_t LaunchTextbookCompact<T>(const CompactArgs&, uint64_t*, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
