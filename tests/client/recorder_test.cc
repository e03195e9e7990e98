// Windows of a load: what is counted in them, and whether they agree.
#include "client/load/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace prefixd::load {
namespace {

using std::chrono::nanoseconds;
using ::testing::SizeIs;

// A second of so many requests with this latency.
Window WindowOf(uint64_t num_ok, int64_t latency_ns) {
  Window window(2);
  for (uint64_t i = 0; i < num_ok; ++i) {
    Tally& tally = window.tallies[i % 2];
    ++tally.num_ok;
    tally.latency.Add(latency_ns);
  }
  window.duration = std::chrono::seconds(1);
  return window;
}

TEST(IsStable, ThreeWindowsWithinTenPercent) {
  const auto stable = [](std::vector<std::pair<uint64_t, int64_t>> of) {
    std::vector<Window> windows;
    for (const auto& [num_ok, latency_ns] : of) windows.push_back(WindowOf(num_ok, latency_ns));
    return IsStable(windows, std::nullopt);
  };
  EXPECT_TRUE(stable({{100, 100}, {110, 100}, {104, 110}}));
  EXPECT_FALSE(stable({{100, 100}, {111, 100}, {104, 100}}));
  EXPECT_FALSE(stable({{100, 100}, {100, 111}, {100, 100}}));
  EXPECT_FALSE(stable({{100, 100}, {100, 100}}));
  EXPECT_TRUE(stable({{500, 9}, {100, 100}, {100, 100}, {100, 100}}));
  EXPECT_FALSE(stable({{100, 100}, {100, 100}, {100, 100}, {500, 9}}));
  EXPECT_FALSE(stable({{0, 0}, {0, 0}, {0, 0}}));
}

TEST(IsStable, ARateIsOfAWindowsOwnTime) {
  std::vector<Window> windows = {WindowOf(100, 50), WindowOf(100, 50), WindowOf(200, 50)};
  EXPECT_FALSE(IsStable(windows, std::nullopt));
  windows[2].duration *= 2;
  EXPECT_TRUE(IsStable(windows, std::nullopt));
}

// The backlog of a long warm-up grows by less than 10 % in a window.
TEST(IsStable, AnOpenLoopKeepsUpWithItsArrivals) {
  std::vector<Window> windows = {WindowOf(100, 50), WindowOf(100, 50), WindowOf(100, 50)};
  EXPECT_TRUE(IsStable(windows, 110));
  EXPECT_FALSE(IsStable(windows, 111));
  // What was refused at once has ended too.
  for (Window& window : windows) window.tallies[0].num_failed = 100;
  EXPECT_TRUE(IsStable(windows, 200));
}

TEST(Recorder, CountsByOperationAndErrorsByCode) {
  Recorder recorder(2);
  recorder.Record(0, nanoseconds(10), {.timing = {.queue_ns = 3, .server_total_ns = 7}, .num_bytes = 100});
  recorder.Record(0, nanoseconds(30), {.timing = {.server_total_ns = 9}, .num_bytes = 100});
  const auto busy = [](const char* message) {
    return Error(absl::StatusCode::kResourceExhausted, "REQUEST_BUDGET", "", message);
  };
  recorder.Record(1, nanoseconds(50), {.status = busy("first"), .num_bytes = 100});
  recorder.Record(0, nanoseconds(50), {.status = busy("second")});
  recorder.Record(1, nanoseconds(50), {.status = absl::UnavailableError("gone")});
  recorder.RecordUnsent(1, nanoseconds(70));
  recorder.RecordInterrupted(1, nanoseconds(60));
  recorder.Record(1, nanoseconds(80), {.status = absl::DeadlineExceededError("late")});
  EXPECT_EQ(recorder.counts().num_ok, 2);
  EXPECT_EQ(recorder.counts().num_failed, 4);
  Window window = recorder.Cut();
  EXPECT_EQ(recorder.counts().num_ok, 0);
  EXPECT_GT(window.duration.count(), 0);
  const Tally& first = window.tallies[0];
  EXPECT_EQ(first.num_ok, 2);
  EXPECT_EQ(first.num_failed, 1);
  EXPECT_EQ(first.num_bytes, 200);
  EXPECT_EQ(first.latency.count(), 2);
  EXPECT_EQ(first.latency.max_ns(), 30);
  const auto stage = [&](Stage s) { return first.stages[static_cast<size_t>(s)]; };
  EXPECT_EQ(stage(Stage::kServer).sum_ns, 16);
  EXPECT_EQ(stage(Stage::kServer).count, 2);
  EXPECT_EQ(stage(Stage::kQueue).sum_ns, 3);
  EXPECT_EQ(stage(Stage::kQueue).count, 1);
  EXPECT_EQ(stage(Stage::kKernel).count, 0);
  EXPECT_EQ(window.tallies[1].num_unsent, 1);
  EXPECT_EQ(window.tallies[1].num_interrupted, 1);
  EXPECT_EQ(window.tallies[1].latency.count(), 3);
  EXPECT_EQ(window.tallies[1].latency.max_ns(), 80);
  ASSERT_THAT(window.errors, SizeIs(3));
  EXPECT_EQ(window.errors["DEADLINE_EXCEEDED"].count, 1);
  EXPECT_EQ(window.errors["RESOURCE_EXHAUSTED (REQUEST_BUDGET)"].count, 2);
  EXPECT_EQ(window.errors["RESOURCE_EXHAUSTED (REQUEST_BUDGET)"].first.message(), "first");
  EXPECT_EQ(window.errors["UNAVAILABLE"].count, 1);

  recorder.Record(1, nanoseconds(5), {.status = busy("third")});
  window.Merge(recorder.Cut());
  EXPECT_EQ(window.errors["RESOURCE_EXHAUSTED (REQUEST_BUDGET)"].count, 3);
  EXPECT_EQ(window.errors["RESOURCE_EXHAUSTED (REQUEST_BUDGET)"].first.message(), "first");
  EXPECT_EQ(window.All().num_failed, 5);
  EXPECT_EQ(window.All().num_interrupted, 1);
}

}  // namespace
}  // namespace prefixd::load
