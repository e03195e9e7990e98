// A device whose work can be scripted: the CPU device behind hooks that delay it, count it or make it fail. As on a
// card, what is copied to the host, or written there by a reduce or a compact, is there once the lane was waited for,
// and not before.
#ifndef PREFIXD_TESTS_SERVER_FAKE_DEVICE_H_
#define PREFIXD_TESTS_SERVER_FAKE_DEVICE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/device.h"
#include "server/request.h"

namespace prefixd {

// What the lanes of tests have, and how long they look for the next task.
inline constexpr uint64_t kStagingBytes = 4 * kMaxReplyPayloadBytes;
inline constexpr std::chrono::microseconds kLanePollTime{250};

class FakeDevice final : public Device {
 public:
  // Called on the lane's thread before every Scan, Reduce, Compact, Difference and call of the glue. An error becomes
  // the call's result.
  std::function<absl::Status()> before_work = [] { return absl::OkStatus(); };
  // If this is not OK, AllocatePinned and Allocate return it instead of memory.
  absl::Status memory_status;
  std::atomic<uint64_t> free_memory_bytes{7};
  // The time that each of these calls seems to take, by the device's clock. 0: the real time.
  std::atomic<int64_t> kernel_ns{0};

  // Arrays up to this size are worked on in host memory. 0: all arrays are copied, as on a card.
  void set_direct_bytes(uint64_t direct_bytes) { info_.direct_bytes = direct_bytes; }

  int works() const { return works_; }
  int waits() const { return waits_; }  // Calls of Synchronize.

  const DeviceInfo& info() const override { return info_; }
  uint64_t FreeMemoryBytes() const override { return free_memory_bytes; }
  absl::StatusOr<std::unique_ptr<Lane>> CreateLane() override {
    PREFIXD_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, cpu_->CreateLane());
    return std::make_unique<FakeLane>(this, std::move(lane));
  }
  absl::StatusOr<Buffer> AllocatePinned(size_t size_bytes) override {
    PREFIXD_RETURN_IF_ERROR(memory_status);
    absl::StatusOr<Buffer> block = cpu_->AllocatePinned(size_bytes);
    if (!block.ok()) return block;
    auto kept = std::make_shared<Buffer>(*std::move(block));
    const std::byte* const data = kept->data();
    const std::lock_guard<std::mutex> lock(mutex_);
    pinned_[data] = size_bytes;
    return Buffer(kept->data(), size_bytes, [this, kept, data](void*) mutable {
      {
        const std::lock_guard<std::mutex> release_lock(mutex_);
        pinned_.erase(data);
      }
      kept.reset();
    });
  }
  const std::vector<AlgorithmInfo>& Algorithms() const override { return cpu_->Algorithms(); }

 private:
  class FakeLane final : public Lane {
   public:
    FakeLane(FakeDevice* device, std::unique_ptr<Lane> lane) : device_(device), lane_(std::move(lane)) {}
    absl::StatusOr<Buffer> Allocate(size_t size_bytes) override {
      PREFIXD_RETURN_IF_ERROR(device_->memory_status);
      return lane_->Allocate(size_bytes);
    }
    absl::Status CopyToDevice(void* dst, const void* src, size_t size_bytes) override {
      return lane_->CopyToDevice(dst, src, size_bytes);
    }
    absl::Status CopyToHost(void* dst, const void* src, size_t size_bytes) override {
      CopyOut copy = {static_cast<std::byte*>(dst), std::vector<std::byte>(size_bytes)};
      PREFIXD_RETURN_IF_ERROR(lane_->CopyToHost(copy.bytes.data(), src, size_bytes));
      copies_out_.push_back(std::move(copy));
      return absl::OkStatus();
    }
    absl::Status CopyOnDevice(void* dst, const void* src, size_t size_bytes, CopyTiming timing) override {
      return lane_->CopyOnDevice(dst, src, size_bytes, timing);
    }
    absl::Status Scan(const ScanArgs& args) override {
      return Work([&] { return lane_->Scan(args); });
    }
    absl::Status Reduce(const ReduceArgs& args) override {
      ReduceArgs late = args;
      LateScalar<ReduceState> states(this, &late.state_out, args.num_arrays);
      return Work([&] { return lane_->Reduce(late); });
    }
    absl::Status Compact(const CompactArgs& args) override {
      CompactArgs late = args;
      LateScalar<uint64_t> counts(this, &late.count, args.num_arrays);
      return Work([&] { return lane_->Compact(late); });
    }
    absl::Status Difference(const DifferenceArgs& args) override {
      return Work([&] { return lane_->Difference(args); });
    }
    absl::Status Fill(const FillArgs& args) override {
      return Work([&] { return lane_->Fill(args); });
    }
    absl::Status Map(const MapArgs& args) override {
      return Work([&] { return lane_->Map(args); });
    }
    absl::Status Gather(const GatherArgs& args) override {
      return Work([&] { return lane_->Gather(args); });
    }
    absl::Status Scatter(const ScatterArgs& args) override {
      return Work([&] { return lane_->Scatter(args); });
    }
    absl::Status CountSegments(const CountArgs& args) override {
      return Work([&] { return lane_->CountSegments(args); });
    }
    absl::Status FindRuns(const RunsArgs& args) override {
      RunsArgs late = args;
      LateScalar<uint64_t> num_offsets(this, &late.num_offsets, 1);
      return Work([&] { return lane_->FindRuns(late); });
    }
    absl::Status Transpose(const TransposeArgs& args) override {
      return Work([&] { return lane_->Transpose(args); });
    }
    absl::Status Synchronize() override {
      ++device_->waits_;
      for (const CopyOut& copy : copies_out_) std::copy(copy.bytes.begin(), copy.bytes.end(), copy.dst);
      copies_out_.clear();
      return lane_->Synchronize();
    }
    void BeginPart() override { lane_->BeginPart(); }
    std::vector<StageTimes> TakeParts() override {
      std::vector<StageTimes> parts = lane_->TakeParts();
      const int64_t faked_ns = std::exchange(faked_ns_, 0);
      if (parts.back().kernel_ns && faked_ns > 0) parts.back().kernel_ns = faked_ns;
      return parts;
    }

   private:
    struct CopyOut {
      std::byte* dst = nullptr;
      std::vector<std::byte> bytes;
    };

    // Where work writes its scalars that belong into pinned memory, until the lane is waited for.
    template <class T>
    class LateScalar {
     public:
      LateScalar(FakeLane* lane, T** scalars, uint64_t count) : lane_(lane) {
        if (!lane->device_->IsPinned(*scalars)) return;
        values_.resize(count);
        to_ = reinterpret_cast<std::byte*>(std::exchange(*scalars, values_.data()));
      }
      ~LateScalar() {
        if (to_ == nullptr) return;
        const auto* const bytes = reinterpret_cast<const std::byte*>(values_.data());
        lane_->copies_out_.push_back({to_, {bytes, bytes + values_.size() * sizeof(T)}});
      }
      LateScalar(const LateScalar&) = delete;
      LateScalar& operator=(const LateScalar&) = delete;

     private:
      FakeLane* const lane_;
      std::byte* to_ = nullptr;
      std::vector<T> values_;
    };

    template <class F>
    absl::Status Work(F&& work) {
      ++device_->works_;
      faked_ns_ += device_->kernel_ns;
      PREFIXD_RETURN_IF_ERROR(device_->before_work());
      return work();
    }
    FakeDevice* const device_;
    const std::unique_ptr<Lane> lane_;
    int64_t faked_ns_ = 0;
    std::vector<CopyOut> copies_out_;  // Since the lane was waited for.
  };

  bool IsPinned(const void* data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(pinned_.begin(), pinned_.end(),
                       [&](const auto& block) { return data >= block.first && data < block.first + block.second; });
  }

  std::mutex mutex_;
  std::map<const std::byte*, size_t> pinned_;  // Its blocks, and their sizes.
  DeviceInfo info_ = {.name = "fake", .memory_bytes = 8, .cache_flush_bytes = 4096};
  const std::unique_ptr<Device> cpu_ = OpenCpuDevice();
  std::atomic<int> works_{0};
  std::atomic<int> waits_{0};
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_FAKE_DEVICE_H_
