// Stands in for cuda_device.cu in a build without the CUDA Toolkit.
#include "kernels/cuda/cuda_device.h"

namespace prefixd {

int CudaDeviceCount() { return 0; }

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int /*ordinal*/) {
  return absl::FailedPreconditionError(
      "this prefixd was built without CUDA: use --device cpu, or build with the CUDA Toolkit and -DPREFIXD_CUDA=ON");
}

}  // namespace prefixd
