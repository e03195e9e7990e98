// A benchmark's surroundings in tests: a fake device with one lane, budgets, and a transport without a wire.
#ifndef PREFIXD_TESTS_SERVER_BENCHMARK_FIXTURE_H_
#define PREFIXD_TESTS_SERVER_BENCHMARK_FIXTURE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/call/benchmark.h"
#include "tests/server/fake_device.h"
#include "tests/server/gate.h"

namespace prefixd {

// Keeps what was measured, and answers each write on a thread of its own.
class FakeBenchmarkTransport final : public BenchmarkTransport {
 public:
  FakeBenchmarkTransport(ServerContext* context, absl::Time deadline)
      : benchmark_(context,
                   {.method = "RunBenchmark", .caller = {.name = "test", .connection = "test:1"}, .deadline = deadline},
                   this) {}
  ~FakeBenchmarkTransport() override {
    { const std::lock_guard<std::mutex> lock(mutex_); }  // The last Write may not have returned yet.
    for (std::thread& thread : threads_) thread.join();
  }

  // Asked before a write is said to be done; false: it failed.
  std::function<bool()> before_write_done = [] { return true; };

  void Start(absl::StatusOr<BenchmarkSpec> spec) {
    if (benchmark_.Start()) benchmark_.OnRequest(std::move(spec));
  }
  [[nodiscard]] bool Wait() { return done_.WaitFor(1); }
  Benchmark& benchmark() { return benchmark_; }
  // How a benchmark ended.
  const Result& result() const { return result_; }
  const std::vector<Measurement>& measurements() const { return measurements_; }

  void Write(const Measurement& measurement) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    measurements_.push_back(measurement);
    threads_.emplace_back([this] { benchmark_.OnWriteDone(before_write_done()); });
  }
  void Finish(const Result& result) override {
    result_ = result;
    benchmark_.OnDone(/*delivered=*/true);
    done_.Arrive();
  }

 private:
  Benchmark benchmark_;
  std::mutex mutex_;
  std::vector<Measurement> measurements_;
  std::vector<std::thread> threads_;
  Result result_;
  Gate done_;
};

class BenchmarkTest : public testing::Test {
 protected:
  BenchmarkTest() {
    device_.free_memory_bytes = uint64_t{1} << 30;
    control_.max_bytes = uint64_t{1} << 20;
    lanes_ = *LanePool::Create(device_, 1, kStagingBytes);
    context_ = {.device = &device_,
                .lanes = lanes_.get(),
                .admission = &admission_,
                .benchmarks = &control_,
                .device_name = "fake",
                .record = [this](const CallRecord& record) { log_ += record.call.method + " "; },
                .on_device_lost = [this](const absl::Status&) { ++device_lost_; }};
  }

  std::unique_ptr<FakeBenchmarkTransport> Start(absl::StatusOr<BenchmarkSpec> spec,
                                                absl::Time deadline = absl::InfiniteFuture()) {
    auto transport = std::make_unique<FakeBenchmarkTransport>(&context_, deadline);
    transport->Start(std::move(spec));
    return transport;
  }
  std::unique_ptr<FakeBenchmarkTransport> Run(absl::StatusOr<BenchmarkSpec> spec) {
    auto transport = Start(std::move(spec));
    EXPECT_TRUE(transport->Wait()) << "the benchmark did not end";
    return transport;
  }

  FakeDevice device_;
  Admission admission_{{.requests = 64, .bytes = uint64_t{1} << 30, .share_percent = 100}};
  BenchmarkControl control_;
  std::unique_ptr<LanePool> lanes_;
  ServerContext context_;
  std::string log_;
  std::atomic<int> device_lost_{0};
};

inline BenchmarkSpec ScanOf(std::vector<uint64_t> sizes, uint32_t repetitions = 3) {
  return {
      .primitives = {Primitive::kScan}, .dtypes = {DType::kI32}, .sizes = std::move(sizes), .repetitions = repetitions};
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_BENCHMARK_FIXTURE_H_
