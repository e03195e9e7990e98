// CUB's scan of the 1- and 2-byte integers.
#include "kernels/yardsticks/cub/cub_scan.cuh"

namespace prefixd::cuda {

template cudaError_t LaunchCubScan<int8_t, int8_t>(const ScanArgs& args, LaunchContext* context,
                                                   uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint8_t, uint8_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<int16_t, int16_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint16_t, uint16_t>(const ScanArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubScan<int8_t, int32_t>(const ScanArgs& args, LaunchContext* context,
                                                    uint64_t* num_launches);
template cudaError_t LaunchCubScan<int8_t, int64_t>(const ScanArgs& args, LaunchContext* context,
                                                    uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint8_t, uint32_t>(const ScanArgs& args, LaunchContext* context,
                                                      uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint8_t, uint64_t>(const ScanArgs& args, LaunchContext* context,
                                                      uint64_t* num_launches);
template cudaError_t LaunchCubScan<int16_t, int32_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<int16_t, int64_t>(const ScanArgs& args, LaunchContext* context,
                                                     uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint16_t, uint32_t>(const ScanArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);
template cudaError_t LaunchCubScan<uint16_t, uint64_t>(const ScanArgs& args, LaunchContext* context,
                                                       uint64_t* num_launches);

}  // namespace prefixd::cuda
