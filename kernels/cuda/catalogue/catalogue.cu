// Which algorithm runs.
#include "kernels/cuda/catalogue/catalogue.h"

#include "kernels/cuda/catalogue/reduces.h"
#include "kernels/cuda/catalogue/scans.h"

namespace prefixd::cuda {

template <class T>
cudaError_t LaunchCatalogueScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
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
      return cudaErrorInvalidValue;
  }
}

template <class T>
cudaError_t LaunchCatalogueReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
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
      return cudaErrorInvalidValue;
  }
}

template <class T>
cudaError_t LaunchCatalogueCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                   uint64_t* num_launches) {
  switch (args.algorithm.strategy) {
    case Strategy::kThreeKernel:
      return LaunchThreeKernelCompact<T>(args, h_num_kept, context, num_launches);
    case Strategy::kAtomicCounter:
      return LaunchAtomicCounterCompact<T>(args, h_num_kept, context, num_launches);
    case Strategy::kThrust:
      return LaunchThrustCompact<T>(args, h_num_kept, context, num_launches);
    default:
      return cudaErrorInvalidValue;
  }
}

#define PREFIXD_INSTANTIATE(T)                                                                 \
  template cudaError_t LaunchCatalogueScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);     \
  template cudaError_t LaunchCatalogueReduce<T>(const ReduceArgs&, LaunchContext*, uint64_t*); \
  template cudaError_t LaunchCatalogueCompact<T>(const CompactArgs&, uint64_t*, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_CATALOGUE_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
