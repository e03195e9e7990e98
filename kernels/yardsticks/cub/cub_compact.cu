// CUB's compaction of the element types of kCubCompactsServe.
#include "kernels/yardsticks/cub/cub_compact.cuh"

namespace prefixd::cuda {

#define PREFIXD_INSTANTIATE(type)                                                                                    \
  template cudaError_t LaunchCubCompact<type>(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context, \
                                              uint64_t* num_launches);
PREFIXD_INSTANTIATE(int8_t)
PREFIXD_INSTANTIATE(uint8_t)
PREFIXD_INSTANTIATE(int16_t)
PREFIXD_INSTANTIATE(uint16_t)
PREFIXD_INSTANTIATE(int32_t)
PREFIXD_INSTANTIATE(uint32_t)
PREFIXD_INSTANTIATE(int64_t)
PREFIXD_INSTANTIATE(uint64_t)
PREFIXD_INSTANTIATE(float)
PREFIXD_INSTANTIATE(double)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
