// The load generator, with a sender of the test's own. No test depends on how long something takes: a test that needs
// time to pass only asks for a minimum.
#include "client/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "client/load/histogram.h"
#include "client/load/mix.h"
#include "client/load/recorder.h"
#include "client/load/schedule.h"

namespace prefixd::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;

// ---- Schedule ------------------------------------------------------------------------------------------------------
TEST(Schedule, IsExactHoweverLongItRuns) {
  const Schedule thirds(3);
  EXPECT_EQ(thirds.Arrival(0).count(), 0);
  EXPECT_EQ(thirds.Arrival(1).count(), 333333333);
  EXPECT_EQ(thirds.Arrival(2).count(), 666666666);
  EXPECT_EQ(thirds.Arrival(3).count(), 1000000000);
  EXPECT_EQ(Schedule(7).Arrival(6).count(), 857142857);
  for (const uint64_t rate : {1, 7, 1000, 30011, 100000}) {
    // A year later it is still on the second.
    const uint64_t year = uint64_t{365} * 86400;
    EXPECT_EQ(Schedule(rate).Arrival(rate * year).count(), static_cast<int64_t>(year * 1000000000)) << rate;
  }
}

TEST(Schedule, NumArrivedCountsTheArrivals) {
  for (const uint64_t rate : {1, 3, 7, 1000, 99991}) {
    const Schedule schedule(rate);
    EXPECT_EQ(schedule.NumArrived(nanoseconds(-1)), 0);
    EXPECT_EQ(schedule.NumArrived(nanoseconds(0)), 0);
    for (uint64_t number = 0; number < 3 * rate; ++number) {
      ASSERT_EQ(schedule.NumArrived(schedule.Arrival(number)), number) << rate;
      ASSERT_EQ(schedule.NumArrived(schedule.Arrival(number) + nanoseconds(1)), number + 1) << rate;
    }
  }
}

// ---- Mix -----------------------------------------------------------------------------------------------------------
Mix MixOf(std::vector<uint32_t> weights, uint64_t seed) {
  std::vector<Operation> operations;
  for (const uint32_t weight : weights) operations.push_back({.weight = weight});
  return Mix(operations, seed);
}

std::vector<uint64_t> Picks(const Mix& mix, uint64_t count) {
  std::vector<uint64_t> picks(mix.operations().size());
  for (uint64_t i = 0; i < count; ++i) ++picks[mix.Pick(i)];
  return picks;
}

TEST(Mix, FollowsTheWeights) {
  for (const uint64_t seed : {0, 1, 42}) {
    const std::vector<uint64_t> picks = Picks(MixOf({8, 1, 1}, seed), 100000);
    // Six standard deviations.
    EXPECT_NEAR(static_cast<double>(picks[0]), 80000, 6 * std::sqrt(100000 * 0.8 * 0.2)) << seed;
    EXPECT_NEAR(static_cast<double>(picks[1]), 10000, 6 * std::sqrt(100000 * 0.1 * 0.9)) << seed;
  }
  EXPECT_THAT(Picks(MixOf({5}, 3), 1000), ElementsAre(1000));
}

TEST(Mix, ASeedRepeatsIt) {
  const Mix mix = MixOf({1, 1}, 7);
  const Mix same = MixOf({1, 1}, 7);
  const Mix other = MixOf({1, 1}, 8);
  int num_different = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(mix.Pick(i), same.Pick(i));
    num_different += mix.Pick(i) != other.Pick(i) ? 1 : 0;
  }
  EXPECT_GT(num_different, 300);
}

TEST(Mix, OperationsHaveNames) {
  EXPECT_EQ(Name({Primitive::kScan, DType::kF32, 1000, 8}), "scan:f32:1000");
  EXPECT_EQ(Name({Primitive::kReduce, DType::kF64, 65536}), "reduce:f64:2^16");
  EXPECT_EQ(Name({Primitive::kCompact, DType::kI8, 512}), "compact:i8:512");
}

// ---- Loads ---------------------------------------------------------------------------------------------------------
const auto kNoProgress = [](const std::string&) {};

LoadResult Measure(const Plan& plan, const Load& load, const Mix& mix, const Sender& send,
                   client::Cancellation& cancellation, OnProgress on_progress) {
  return RunLoad(plan, load, mix, send, cancellation, on_progress).value();
}

Plan PlanOf(absl::Duration measure) { return {.warm_up = absl::ZeroDuration(), .measure = measure}; }

TEST(RunLoad, AClosedLoopCountsAllThatItSent) {
  std::atomic<uint64_t> sent = 0;
  std::array<std::atomic<uint64_t>, 3> by_caller = {};
  const Sender send = [&](size_t caller, size_t operation) {
    ++sent;
    ++by_caller.at(caller);
    std::this_thread::sleep_for(milliseconds(1));  // Each request takes so long that every caller gets some.
    Outcome outcome = {.num_bytes = 10};
    if (operation == 1) outcome.status = absl::UnavailableError("no");
    return outcome;
  };
  client::Cancellation cancellation;
  // So seldom that the pause after it does not end the load without a success.
  const LoadResult result =
      Measure(PlanOf(absl::Milliseconds(300)), {.num_callers = 3}, MixOf({20, 1}, 1), send, cancellation, kNoProgress);
  const Tally all = result.measured.All();
  EXPECT_EQ(all.num_ok + all.num_late + all.num_failed, sent);
  EXPECT_EQ(all.latency.count(), all.num_ok + all.num_late);
  EXPECT_EQ(all.num_bytes, 10 * all.num_ok);
  EXPECT_EQ(result.measured.tallies[0].num_failed, 0);
  EXPECT_EQ(result.measured.tallies[1].num_ok, 0);
  EXPECT_EQ(result.num_windows, 3);
  EXPECT_GE(result.measured.duration, milliseconds(300));
  for (const auto& count : by_caller) EXPECT_GT(count, 0);
}

TEST(RunLoad, AWarmUpDoesNotCount) {
  std::atomic<uint64_t> ended = 0;
  const Sender send = [&](size_t, size_t) {
    std::this_thread::sleep_for(milliseconds(1));  // A request takes a while.
    ++ended;
    return Outcome();
  };
  client::Cancellation cancellation;
  Plan plan = PlanOf(absl::Milliseconds(60));
  plan.warm_up = absl::Milliseconds(300);
  uint64_t ended_while_warm = 0;
  const LoadResult result = Measure(plan, {}, MixOf({1}, 1), send, cancellation, [&](const std::string& what) {
    if (!what.starts_with("warm-up")) return;
    while (ended < 3) std::this_thread::yield();
    ended_while_warm = ended - 1;  // One may not have been counted yet.
  });
  EXPECT_GT(ended_while_warm, 1);
  EXPECT_LE(result.measured.All().latency.count(), ended - ended_while_warm);
}

TEST(RunLoad, AnOpenLoopDropsNothing) {
  std::atomic<uint64_t> sent = 0;
  const Sender send = [&](size_t, size_t) {
    ++sent;
    std::this_thread::sleep_for(milliseconds(3));  // Longer than between arrivals, so that some wait.
    return Outcome();
  };
  client::Cancellation cancellation;
  // Ten times as many as one caller can send.
  const LoadResult result = Measure(PlanOf(absl::Milliseconds(300)), {.rate_per_second = 3000, .num_callers = 1},
                                    MixOf({1, 1}, 1), send, cancellation, kNoProgress);
  const Tally all = result.measured.All();
  EXPECT_EQ(all.num_ok + all.num_late, sent);
  EXPECT_GT(all.num_unsent, 0);
  EXPECT_EQ(all.latency.count(), sent + all.num_unsent);
  // The schedule begins a little after the first window.
  EXPECT_GE(sent + all.num_unsent, Schedule(3000).NumArrived(result.measured.duration - milliseconds(100)));
  EXPECT_FALSE(result.stable);
}

TEST(RunLoad, AStallOfAnOpenLoopShowsInAllThatItHeldUp) {
  std::atomic<bool> stalled = true;
  const Sender send = [&](size_t, size_t) {
    while (stalled) std::this_thread::sleep_for(milliseconds(1));  // Stalls until the test ends it.
    return Outcome();
  };
  client::Cancellation cancellation;
  const LoadResult result = Measure(
      PlanOf(absl::Milliseconds(300)), {.rate_per_second = 1000, .num_callers = 2}, MixOf({1}, 1), send, cancellation,
      [&](const std::string& what) { stalled = stalled && what.find("window 3") == std::string::npos; });
  // The first hundred arrived in the first 100 ms, and nothing ended in the first 200.
  const Histogram& latency = result.measured.tallies[0].latency;
  const double count = static_cast<double>(latency.count());
  EXPECT_GE(latency.Percentile(1 - 99 / count), 100'000'000);
}

TEST(RunLoad, AnOpenLoopSendsNothingEarly) {
  std::atomic<uint64_t> sent = 0;
  const Sender send = [&](size_t, size_t) {
    ++sent;
    return Outcome();
  };
  client::Cancellation cancellation;
  const Clock::time_point began = Clock::now();
  const LoadResult result = Measure(PlanOf(absl::Milliseconds(200)), {.rate_per_second = 100, .num_callers = 8},
                                    MixOf({1}, 1), send, cancellation, kNoProgress);
  EXPECT_GE(sent, 20);
  EXPECT_LE(sent, Schedule(100).NumArrived(Clock::now() - began));
  EXPECT_EQ(result.measured.All().num_unsent, 0);
}

TEST(RunLoad, WhereNothingSucceedsItEndsAtOnce) {
  std::atomic<int> sent = 0;
  const Sender send = [&](size_t, size_t) {
    ++sent;
    return Outcome{.status = absl::UnavailableError("gone")};
  };
  // Two callers: with the third request one has been counted.
  const auto until_one_failed = [&](const std::string& what) {
    while (what.starts_with("warm-up") && sent < 3) std::this_thread::yield();
  };
  client::Cancellation cancellation;
  for (const std::optional<uint64_t> rate : {std::optional<uint64_t>(), std::optional<uint64_t>(1000)}) {
    Plan plan = PlanOf(absl::Seconds(3 * 3600));
    plan.warm_up = absl::Milliseconds(50);
    sent = 0;
    const LoadResult result =
        Measure(plan, {.rate_per_second = rate, .num_callers = 2}, MixOf({1}, 1), send, cancellation, until_one_failed);
    EXPECT_TRUE(result.hopeless);
    EXPECT_FALSE(result.stable);
    EXPECT_GT(result.measured.All().num_failed, 0);
    EXPECT_EQ(result.measured.errors.at("UNAVAILABLE").count, result.measured.All().num_failed);
  }
}

TEST(RunLoad, OneThatIsStillUnderWayIsWaitedFor) {
  std::atomic<bool> done = false;
  std::atomic<int> num_failed = 0;
  const Sender send = [&](size_t caller, size_t) {
    if (caller == 1) {
      ++num_failed;
      return Outcome{.status = absl::UnavailableError("full")};
    }
    for (int i = 0; i < 10'000 && !done; ++i) std::this_thread::sleep_for(milliseconds(1));  // Outlasts a window.
    return Outcome();
  };
  client::Cancellation cancellation;
  // Long enough to lose patience in.
  const LoadResult result = Measure(PlanOf(absl::Milliseconds(1800)), {.num_callers = 2}, MixOf({1}, 1), send,
                                    cancellation, [&](const std::string& what) {
                                      while (num_failed == 0) std::this_thread::yield();
                                      done = what.find("window 3") != std::string::npos;
                                    });
  EXPECT_FALSE(result.hopeless);
  EXPECT_EQ(result.num_windows, 3);
  EXPECT_GT(result.measured.All().num_ok + result.measured.All().num_late, 0);
}

struct ServerThatMayGo {
  std::atomic<bool> gone = false;
  std::atomic<int> num_ok = 0;
  const Sender send = [this](size_t, size_t) {
    std::this_thread::sleep_for(milliseconds(1));  // A request takes a while.
    if (gone) return Outcome{.status = absl::UnavailableError("gone")};
    ++num_ok;
    return Outcome();
  };
};

TEST(RunLoad, AServerThatWasAwayForAWhileIsNotGivenUp) {
  ServerThatMayGo server;
  client::Cancellation cancellation;
  const LoadResult result = Measure(PlanOf(absl::Milliseconds(1500)), {.num_callers = 2}, MixOf({1}, 1), server.send,
                                    cancellation, [&](const std::string& what) {
                                      while (server.num_ok == 0) std::this_thread::yield();
                                      server.gone = what.find("window 1") == std::string::npos;
                                    });
  EXPECT_FALSE(result.hopeless);
  EXPECT_EQ(result.num_windows, 3);
  EXPECT_GE(result.measured.duration, milliseconds(1500));
  EXPECT_GT(result.measured.All().num_failed, 0);
}

TEST(RunLoad, AServerThatIsGoneForGoodIsAFailure) {
  ServerThatMayGo server;
  const auto in_warm_up = [&](const std::string& what) {
    while (server.num_ok == 0) std::this_thread::yield();
    server.gone = !what.starts_with("warm-up");
  };
  client::Cancellation cancellation;
  Plan plan = PlanOf(absl::Milliseconds(600));
  plan.warm_up = absl::Milliseconds(100);
  plan.until_stable = true;
  const LoadResult result = Measure(plan, {.num_callers = 2}, MixOf({1}, 1), server.send, cancellation, in_warm_up);
  EXPECT_TRUE(result.hopeless);
  EXPECT_LT(result.num_windows, kMaxWindows);
  EXPECT_EQ(result.measured.All().num_ok, 0);
  EXPECT_GT(result.measured.All().num_failed, 0);
}

TEST(RunLoad, WhatIsInterruptedCountsWithItsWait) {
  client::Cancellation cancellation;
  std::atomic<int> sent = 0;
  const Sender send = [&](size_t, size_t) {
    ++sent;
    while (!cancellation.cancelled()) std::this_thread::sleep_for(milliseconds(1));  // Hangs until the caller gives up.
    return Outcome{.status = absl::CancelledError("the call was cancelled")};
  };
  const Clock::time_point began = Clock::now();
  const LoadResult result = Measure(PlanOf(absl::Seconds(3 * 3600)), {.num_callers = 4}, MixOf({1}, 1), send,
                                    cancellation, [&](const std::string&) {
                                      if (sent == 4 && Clock::now() - began > milliseconds(50)) cancellation.Cancel();
                                    });
  const Tally all = result.measured.All();
  EXPECT_EQ(all.num_interrupted, 4);
  EXPECT_EQ(all.latency.count(), 4);
  EXPECT_GT(all.latency.max_ns(), 0);
  EXPECT_FALSE(result.hopeless);
}

TEST(RunLoad, CancellationKeepsWhatCame) {
  client::Cancellation cancellation;
  std::atomic<uint64_t> sent = 0;
  const Sender send = [&](size_t, size_t) {
    std::this_thread::sleep_for(milliseconds(1));  // A request takes a while.
    if (cancellation.cancelled()) return Outcome{.status = absl::CancelledError("the call was cancelled")};
    ++sent;
    return Outcome();
  };
  const LoadResult result = Measure(PlanOf(absl::Seconds(3 * 3600)), {.num_callers = 4}, MixOf({1}, 1), send,
                                    cancellation, [&](const std::string&) {
                                      if (sent > 20) cancellation.Cancel();
                                    });
  EXPECT_FALSE(result.stable);
  EXPECT_FALSE(result.hopeless);
  EXPECT_EQ(result.num_windows, 1);
  const Tally all = result.measured.All();
  EXPECT_EQ(all.num_ok + all.num_late, sent);
  EXPECT_EQ(all.num_failed, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // They can't be told that memory is short.
TEST(RunLoadDeathTest, MoreCallersThanThereCanBeThreadsAreAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_with_little_room = [] {
    std::ifstream statm("/proc/self/statm");
    rlim_t num_pages = 0;
    statm >> num_pages;
    const rlim_t bytes = num_pages * sysconf(_SC_PAGESIZE) + (rlim_t{256} << 20);  // For thirty stacks.
    const rlimit limit = {bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) exit(2);
    client::Cancellation cancellation;
    const Sender send = [](size_t, size_t) { return Outcome(); };
    const absl::Status status =
        RunLoad(PlanOf(absl::Seconds(1)), {.num_callers = 1000}, MixOf({1}, 1), send, cancellation, kNoProgress)
            .status();
    std::cerr << status;
    exit(absl::IsResourceExhausted(status) ? 0 : 1);
  };
  EXPECT_EXIT(run_with_little_room(), ::testing::ExitedWithCode(0), "only [0-9]+ of 1000 callers could start");
}
#endif

TEST(RunLoad, UntilStableEndsAfterTenWindowsAtTheLatest) {
  std::atomic<int> window = 0;
  // Windows differ by more than ten times.
  const Sender send = [&](size_t, size_t) {
    std::this_thread::sleep_for(milliseconds(window % 2 == 0 ? 1 : 40));  // How long a request takes, by window.
    return Outcome();
  };
  client::Cancellation cancellation;
  Plan plan = PlanOf(absl::Milliseconds(360));
  const auto follow = [&](const std::string& what) { window = std::stoi(what.substr(std::string("window ").size())); };
  EXPECT_EQ(Measure(plan, {}, MixOf({1}, 1), send, cancellation, follow).num_windows, 3);
  plan.until_stable = true;
  const LoadResult result = Measure(plan, {}, MixOf({1}, 1), send, cancellation, follow);
  EXPECT_EQ(result.num_windows, kMaxWindows);
  EXPECT_FALSE(result.stable);
}

}  // namespace
}  // namespace prefixd::load
