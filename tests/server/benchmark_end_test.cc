// How benchmarks end, one at a time: cancelled, drained, late, or with what they run on.
#include "server/call/benchmark.h"

#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/benchmark_fixture.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

// A benchmark that stands in its work number `stop_at` until it is let go.
class StandingBenchmarkTest : public BenchmarkTest {
 protected:
  void StandAt(int stop_at) {
    device_.before_work = [this, stop_at] {
      if (device_.works() == stop_at) {
        standing_.Arrive();
        EXPECT_TRUE(go_on_.WaitFor(1));
      }
      return absl::OkStatus();
    };
  }
  Gate standing_;
  Gate go_on_;
};

TEST_F(StandingBenchmarkTest, ThereIsOneAtATime) {
  StandAt(1);
  const auto first = Start(ScanOf({1}));
  ASSERT_TRUE(standing_.WaitFor(1));
  const auto second = Run(ScanOf({1}));
  EXPECT_EQ(second->result().status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(second->result().status), "BENCHMARK_RUNNING");
  EXPECT_EQ(admission_.in_use().requests, 1u);
  go_on_.Arrive();
  ASSERT_TRUE(first->Wait());
  EXPECT_TRUE(first->result().status.ok());
  EXPECT_TRUE(Run(ScanOf({1}))->result().status.ok());
  EXPECT_EQ(admission_.in_use().requests, 0u);
}

TEST_F(StandingBenchmarkTest, CancellingEndsItWithinASample) {
  StandAt(3);
  const auto run = Start(ScanOf({1, 1}, 10));
  ASSERT_TRUE(standing_.WaitFor(1));
  run->benchmark().OnCancel();
  go_on_.Arrive();
  ASSERT_TRUE(run->Wait());
  EXPECT_EQ(run->result().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(device_.works(), 3);
  EXPECT_TRUE(run->measurements().empty());
  EXPECT_TRUE(Run(ScanOf({1}))->result().status.ok());
}

TEST_F(StandingBenchmarkTest, DrainingEndsItWithinASample) {
  StandAt(3);
  const auto run = Start(ScanOf({1}, 10));
  ASSERT_TRUE(standing_.WaitFor(1));
  control_.stopping = true;
  go_on_.Arrive();
  ASSERT_TRUE(run->Wait());
  EXPECT_EQ(ErrorReason(run->result().status), "DRAINING");
  EXPECT_EQ(device_.works(), 3);
}

TEST_F(BenchmarkTest, ADeadlineEndsIt) {
  const auto run = Start(ScanOf({1}, 1000), absl::Now() - absl::Seconds(1));
  ASSERT_TRUE(run->Wait());
  EXPECT_EQ(ErrorReason(run->result().status), "DEADLINE");
  EXPECT_EQ(device_.works(), 0);
}

TEST_F(BenchmarkTest, TheNextMeasurementWaitsForTheWrite) {
  Gate written;
  Gate go_on;
  auto run = std::make_unique<FakeBenchmarkTransport>(&context_, absl::InfiniteFuture());
  run->before_write_done = [&] {
    written.Arrive();
    return go_on.WaitFor(1);
  };
  run->Start(ScanOf({1, 1}, 1));
  ASSERT_TRUE(written.WaitFor(1));
  // The lane is free meanwhile.
  Gate lane_ran;
  lanes_->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { lane_ran.Arrive(); });
  ASSERT_TRUE(lane_ran.WaitFor(1));
  EXPECT_EQ(device_.works(), 2);
  go_on.Arrive();
  ASSERT_TRUE(run->Wait());
  EXPECT_EQ(device_.works(), 4);
}

TEST_F(BenchmarkTest, AFailedWriteEndsIt) {
  auto run = std::make_unique<FakeBenchmarkTransport>(&context_, absl::InfiniteFuture());
  run->before_write_done = [] { return false; };
  run->Start(ScanOf({1, 1}, 1));
  ASSERT_TRUE(run->Wait());
  EXPECT_EQ(run->result().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(run->measurements().size(), 1u);
}

TEST_F(BenchmarkTest, ALostDeviceIsReported) {
  device_.before_work = [] { return Error(absl::StatusCode::kUnavailable, "DEVICE_LOST", "", "the card is gone"); };
  const auto run = Run(ScanOf({1}));
  EXPECT_EQ(ErrorReason(run->result().status), "DEVICE_LOST");
  EXPECT_EQ(device_lost_, 1);
}

TEST_F(BenchmarkTest, LeavesNoTimesOnTheLane) {
  device_.before_work = [this] { return device_.works() == 3 ? absl::InternalError("odd") : absl::OkStatus(); };
  EXPECT_EQ(Run(ScanOf({100}))->result().status.code(), absl::StatusCode::kInternal);
  Gate ran;
  StageTimes times;
  lanes_->Submit({TaskSize::kLarge}, [&](BorrowedLane& lane) {
    times = lane.lane->TakeStageTimes();
    ran.Arrive();
  });
  ASSERT_TRUE(ran.WaitFor(1));
  EXPECT_EQ(times.launches, 0u);
  EXPECT_FALSE(times.kernel_ns);
}

}  // namespace
}  // namespace prefixd
