// CUB's compaction of all element types.
#include "kernels/yardsticks/cub/cub_compact.cuh"

namespace prefixd::cuda {

#define PREFIXD_INSTANTIATE(name, type)                                                                              \
  template cudaError_t LaunchCubCompact<type>(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context, \
                                              uint64_t* num_launches);
PREFIXD_FOR_EACH_DTYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
