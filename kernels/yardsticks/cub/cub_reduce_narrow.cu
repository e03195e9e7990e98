// CUB's reduce of the 1- and 2-byte integers.
#include "kernels/yardsticks/cub/cub_reduce.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubReduce<int8_t, int8_t>(const ReduceArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint8_t, uint8_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<int16_t, int16_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint16_t, uint16_t>(const ReduceArgs& args, LaunchContext* context,
                                                         uint64_t* num_launches);
template cudaError_t LaunchCubReduce<int8_t, int32_t>(const ReduceArgs& args, LaunchContext* context,
                                                      uint64_t* num_launches);
template cudaError_t LaunchCubReduce<int8_t, int64_t>(const ReduceArgs& args, LaunchContext* context,
                                                      uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint8_t, uint32_t>(const ReduceArgs& args, LaunchContext* context,
                                                        uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint8_t, uint64_t>(const ReduceArgs& args, LaunchContext* context,
                                                        uint64_t* num_launches);
template cudaError_t LaunchCubReduce<int16_t, int32_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<int16_t, int64_t>(const ReduceArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint16_t, uint32_t>(const ReduceArgs& args, LaunchContext* context,
                                                         uint64_t* num_launches);
template cudaError_t LaunchCubReduce<uint16_t, uint64_t>(const ReduceArgs& args, LaunchContext* context,
                                                         uint64_t* num_launches);

}  // namespace prefixd::cuda
