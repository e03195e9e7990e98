// The CUDA device: a Lane is a stream. Plain C++, so that a build without the toolkit can say that it has none.
#ifndef PREFIXD_KERNELS_CUDA_CUDA_DEVICE_H_
#define PREFIXD_KERNELS_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace prefixd {

// Cards that can be opened; 0 without a driver, without a card, or in a build without CUDA.
int CudaDeviceCount();

// Errors: FAILED_PRECONDITION if there is no such card, or the build has no CUDA or no code for its architecture.
absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_CUDA_CUDA_DEVICE_H_
