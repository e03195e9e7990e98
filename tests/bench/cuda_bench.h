// What the benchmarks on a card have in common: a benchmark ends at the first error, a time is a median, and a figure
// has a line.
#ifndef PREFIXD_TESTS_BENCH_CUDA_BENCH_H_
#define PREFIXD_TESTS_BENCH_CUDA_BENCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace prefixd {

inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::cerr << "error: " << cudaGetErrorString(error) << '\n';
  std::exit(1);
}
inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "error: " << status << '\n';
  std::exit(1);
}
template <class T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

inline double Median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

struct CudaFree {
  void operator()(void* d_array) const { Check(cudaFree(d_array)); }
};
template <class T>
using DeviceArray = std::unique_ptr<T[], CudaFree>;

template <class T>
DeviceArray<T> Allocate(size_t n) {
  void* d_array = nullptr;
  Check(cudaMalloc(&d_array, n * sizeof(T)));
  return DeviceArray<T>(static_cast<T*>(d_array));
}

// The first card, a lane of it, and times of what runs there: medians of 21 in microseconds, the L2 cache flushed
// before each by copying 128 MiB.
class BenchCard {
 public:
  static constexpr size_t kScratchBytes = size_t{256} << 20;

  // Prints the head of the table: the card, and what is to be said about the figures.
  explicit BenchCard(const std::string& about) {
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
    std::printf("# %s, %s\n%-48s %12s %10s %9s %7s\n", device_->info().name.c_str(), about.c_str(), "what", "items",
                "us", "GB/s", "share");
  }

  Lane& lane() const { return *lane_; }
  std::byte* d_scratch() const { return scratch_.get(); }

  // What is enqueued on the lane, by the lane's clock.
  double TimeOfLane(const std::function<absl::Status()>& enqueue) const {
    return MedianOf([&] {
      Check(lane_->CopyOnDevice(flush_.get(), flush_.get() + kFlushBytes, kFlushBytes, CopyTiming::kUntimed));
      Check(enqueue());
      Check(lane_->Synchronize());
      const std::optional<int64_t> kernel_ns = lane_->TakeStageTimes().kernel_ns;
      if (!kernel_ns) Check(absl::InternalError("a kernel has no time"));
      return static_cast<double>(*kernel_ns) / 1e3;
    });
  }

  // What is enqueued on the default stream, by events.
  double TimeOfCuda(const std::function<cudaError_t()>& enqueue) const {
    return MedianOf([&] {
      Check(cudaMemcpyAsync(flush_.get(), flush_.get() + kFlushBytes, kFlushBytes, cudaMemcpyDeviceToDevice));
      Check(cudaEventRecord(begin_));
      Check(enqueue());
      Check(cudaEventRecord(end_));
      Check(cudaEventSynchronize(end_));
      float ms = 0;
      Check(cudaEventElapsedTime(&ms, begin_, end_));
      return ms * 1e3;
    });
  }

  // A device-to-device copy that moves so many bytes, half of them read. Where two arrays lie makes up to a tenth of
  // difference: the best of some.
  double TimeOfCopy(uint64_t num_bytes) {
    double& known_us = copies_us_.try_emplace(num_bytes, std::numeric_limits<double>::infinity()).first->second;
    if (known_us < std::numeric_limits<double>::infinity()) return known_us;
    for (const size_t padding : {0, 1 << 20, 3 << 20}) {
      const auto in = Allocate<std::byte>(num_bytes / 2 + padding);
      const auto out = Allocate<std::byte>(num_bytes / 2 + padding);
      known_us = std::min(known_us, TimeOfCuda([&] {
                            return cudaMemcpyAsync(out.get(), in.get(), num_bytes / 2, cudaMemcpyDeviceToDevice);
                          }));
    }
    return known_us;
  }

  // Prints the line of a figure, and behind it its share over another's if there is one. Returns its share: the time of
  // a copy that moves as many bytes over its own.
  double Print(const std::string& what, uint64_t num_items, double us, uint64_t num_bytes,
               std::optional<double> other_share = std::nullopt) {
    const double share = TimeOfCopy(num_bytes) / us;
    std::printf("%-48s %12llu %10.2f %9.1f %7.3f", what.c_str(), static_cast<unsigned long long>(num_items), us,
                static_cast<double>(num_bytes) / us / 1e3, share);
    if (other_share) std::printf(" %9.3f", share / *other_share);
    std::printf("\n");
    std::fflush(stdout);
    return share;
  }

 private:
  static constexpr size_t kFlushBytes = size_t{128} << 20;

  static double MedianOf(const std::function<double()>& sample) {
    constexpr int kWarmUps = 3, kSamples = 21;
    std::vector<double> times;
    for (int i = 0; i < kWarmUps; ++i) sample();
    for (int i = 0; i < kSamples; ++i) times.push_back(sample());
    return Median(std::move(times));
  }

  const std::unique_ptr<Device> device_ = Check(OpenDevice("cuda:0"));
  const std::unique_ptr<Lane> lane_ = Check(device_->CreateLane());
  const DeviceArray<std::byte> flush_ = Allocate<std::byte>(2 * kFlushBytes);
  const DeviceArray<std::byte> scratch_ = Allocate<std::byte>(kScratchBytes);
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  std::map<uint64_t, double> copies_us_;
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_BENCH_CUDA_BENCH_H_
