// Turns a cudaError_t into an absl::Status.
//
//   PREFIXD_RETURN_IF_ERROR(health.Check(cudaMemcpyAsync(...), "cudaMemcpyAsync"));
//
// Threads: a DeviceHealth is shared by a device and all its lanes, and may be used from any thread.
#ifndef PREFIXD_KERNELS_CUDA_CUDA_STATUS_H_
#define PREFIXD_KERNELS_CUDA_CUDA_STATUS_H_

#include <cuda_runtime.h>

#include <atomic>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace prefixd::cuda {

// Errors after which the context, and with it every allocation, is gone: no later call can succeed in this process.
constexpr bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

class DeviceHealth {
 public:
  explicit DeviceHealth(int ordinal) : ordinal_(ordinal) {}

  // OK, or DEVICE_LOST if a sticky error was seen.
  absl::Status Alive() const {
    const cudaError_t error = lost_to_.load(std::memory_order_relaxed);
    return error == cudaSuccess ? absl::OkStatus() : Lost(error, "an earlier call");
  }

  // The status of what `call` returned. A sticky error marks the device lost.
  absl::Status Check(cudaError_t error, std::string_view call) {
    if (error == cudaSuccess) return absl::OkStatus();
    // The runtime keeps the last error for whoever asks next. This one is reported here, so it is cleared.
    cudaGetLastError();
    if (IsSticky(error)) {
      cudaError_t first = cudaSuccess;
      lost_to_.compare_exchange_strong(first, error, std::memory_order_relaxed);
      return Lost(error, call);
    }
    if (error == cudaErrorMemoryAllocation) {
      return Error(absl::StatusCode::kResourceExhausted, "DEVICE_MEMORY", "",
                   absl::StrCat(AbslView(call), " on ", Describe(error)));
    }
    return Error(absl::StatusCode::kInternal, "DEVICE_ERROR", "",
                 absl::StrCat(AbslView(call), " on ", Describe(error)));
  }

 private:
  absl::Status Lost(cudaError_t error, std::string_view call) const {
    return Error(absl::StatusCode::kUnavailable, "DEVICE_LOST", "",
                 absl::StrCat("the device is lost: ", AbslView(call), " on ", Describe(error)));
  }
  std::string Describe(cudaError_t error) const {
    return absl::StrCat("cuda:", ordinal_, " failed with ", cudaGetErrorName(error), " (", cudaGetErrorString(error),
                        ")");
  }

  const int ordinal_;
  std::atomic<cudaError_t> lost_to_ = cudaSuccess;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_CUDA_STATUS_H_
