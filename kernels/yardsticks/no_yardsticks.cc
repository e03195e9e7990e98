// Stands in for yardsticks.cc in a build without yardsticks.
#include "kernels/yardsticks/yardsticks.h"

namespace prefixd::cuda {

std::vector<AlgorithmInfo> YardstickAlgorithms() { return {}; }

cudaError_t LaunchYardstick(const ScanArgs& args, LaunchContext* /*context*/, uint64_t* /*num_launches*/) {
  FatalValue("LaunchYardstick of a scan", args.algorithm.strategy);
}

cudaError_t LaunchYardstick(const ReduceArgs& args, LaunchContext* /*context*/, uint64_t* /*num_launches*/) {
  FatalValue("LaunchYardstick of a reduce", args.algorithm.strategy);
}

cudaError_t LaunchYardstick(const CompactArgs& args, uint64_t* /*h_num_kept*/, LaunchContext* /*context*/,
                            uint64_t* /*num_launches*/) {
  FatalValue("LaunchYardstick of a compact", args.algorithm.strategy);
}

}  // namespace prefixd::cuda
