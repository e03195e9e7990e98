// Times the stages of a lane on the device's clock: a pair of events around each copy and each launch.
//
//   clock.Begin(stream, Stage::kKernel);  launch...;  clock.End(stream, {.num_bytes = n});
//   cudaStreamSynchronize(stream);  clock.FoldAll();  std::vector<StageTimes> times = clock.TakeParts();
//
// Pairs wait in a queue until their time is known. The queue is bounded: Begin waits for the oldest pair when
// kMaxPending of them are unread. Threads: one caller.
#ifndef PREFIXD_KERNELS_CUDA_STAGE_CLOCK_H_
#define PREFIXD_KERNELS_CUDA_STAGE_CLOCK_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/device.h"

namespace prefixd::cuda {

enum class Stage { kHostToDevice, kKernel, kDeviceToHost };

// What kernels moved: a fixed number of bytes, and some for each element that they kept.
struct Traffic {
  uint64_t launches = 1;
  uint64_t num_bytes = 0;
  uint64_t num_bytes_per_kept = 0;
};

class StageClock {
 public:
  StageClock() = default;
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;
  // Errors are ignored here: there is nobody to tell, and a device that is lost says so at the next call.
  ~StageClock() {
    for (Span& span : spans_) {
      if (span.begin != nullptr) cudaEventDestroy(span.begin);
      if (span.end != nullptr) cudaEventDestroy(span.end);
    }
    if (h_num_kept_ != nullptr) cudaFreeHost(h_num_kept_);
  }

  // Creates everything that is needed later. Needs: the lane's device is current.
  cudaError_t Init() {
    if (const cudaError_t error = cudaHostAlloc(reinterpret_cast<void**>(&h_num_kept_),
                                                kMaxPending * sizeof(*h_num_kept_), cudaHostAllocDefault);
        error != cudaSuccess) {
      return error;
    }
    for (Span& span : spans_) {
      if (const cudaError_t error = cudaEventCreate(&span.begin); error != cudaSuccess) return error;
      if (const cudaError_t error = cudaEventCreate(&span.end); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  cudaError_t Begin(cudaStream_t stream, Stage stage) {
    if (next_ - oldest_ == kMaxPending) {
      if (const cudaError_t error = cudaEventSynchronize(spans_[oldest_ % kMaxPending].end); error != cudaSuccess) {
        return error;
      }
      if (const cudaError_t error = FoldOldest(); error != cudaSuccess) return error;
    }
    Current().stage = stage;
    Current().part = parts_.size() - 1;
    return cudaEventRecord(Current().begin, stream);
  }

  // Where the kernel of the open pair writes the number of elements that it kept.
  uint64_t* num_kept() { return &h_num_kept_[next_ % kMaxPending]; }

  // Closes the pair. A pair that was begun and never ended leaves no trace.
  cudaError_t End(cudaStream_t stream, Traffic traffic) {
    Current().traffic = traffic;
    const cudaError_t error = cudaEventRecord(Current().end, stream);
    if (error == cudaSuccess) ++next_;
    return error;
  }

  // Reads every pair. Needs: the stream is synchronized.
  cudaError_t FoldAll() {
    while (oldest_ != next_) {
      if (const cudaError_t error = FoldOldest(); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  // As Lane::BeginPart and Lane::TakeParts.
  void BeginPart() { parts_.emplace_back(); }
  std::vector<StageTimes> TakeParts() { return std::exchange(parts_, std::vector<StageTimes>(1)); }

 private:
  static constexpr uint64_t kMaxPending = 64;

  struct Span {
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    Stage stage = Stage::kKernel;
    size_t part = 0;
    Traffic traffic;
  };

  Span& Current() { return spans_[next_ % kMaxPending]; }

  cudaError_t FoldOldest() {
    const Span& span = spans_[oldest_ % kMaxPending];
    float milliseconds = 0;
    if (const cudaError_t error = cudaEventElapsedTime(&milliseconds, span.begin, span.end); error != cudaSuccess) {
      return error;
    }
    // After an error, parts may have been taken before all their pairs were read.
    StageTimes& times = parts_[std::min(span.part, parts_.size() - 1)];
    std::optional<int64_t>& sum_ns = span.stage == Stage::kHostToDevice   ? times.host_to_device_ns
                                     : span.stage == Stage::kDeviceToHost ? times.device_to_host_ns
                                                                          : times.kernel_ns;
    sum_ns = sum_ns.value_or(0) + std::llround(static_cast<double>(milliseconds) * 1e6);
    if (span.stage == Stage::kKernel) {
      times.launches += span.traffic.launches;
      times.num_bytes += span.traffic.num_bytes;
      if (span.traffic.num_bytes_per_kept != 0) {
        times.num_bytes += span.traffic.num_bytes_per_kept * h_num_kept_[oldest_ % kMaxPending];
      }
    }
    ++oldest_;
    return cudaSuccess;
  }

  Span spans_[kMaxPending];
  uint64_t oldest_ = 0;  // Pairs are numbered in order; pair i is in spans_[i % kMaxPending].
  uint64_t next_ = 0;
  uint64_t* h_num_kept_ = nullptr;  // Pinned, one for each of spans_.
  std::vector<StageTimes> parts_ = std::vector<StageTimes>(1);
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_STAGE_CLOCK_H_
