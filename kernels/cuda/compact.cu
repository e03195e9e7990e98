// The compact kernels of all element types.
#include "kernels/cuda/compact.cuh"

namespace prefixd::cuda {

#define PREFIXD_INSTANTIATE(name, type) \
  template cudaError_t LaunchCompact<type>(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context);
PREFIXD_FOR_EACH_DTYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
