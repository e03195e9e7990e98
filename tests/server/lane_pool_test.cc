#include "server/lanes/lane_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/request.h"
#include "tests/server/fake_device.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

constexpr uint64_t kStagingBytes = 4 * kMaxReplyPayloadBytes;
constexpr std::chrono::microseconds kPollTime{250};

TEST(LanePoolTest, TwoLanesRunTwoTasksAtTheSameTime) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 2, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok()) << pool.status();
  Gate started;
  Gate ended;
  std::atomic<int> met{0};
  for (int i = 0; i < 2; ++i) {
    (*pool)->Submit({TaskSize::kSmall}, [&](BorrowedLane&) {
      started.Arrive();
      if (started.WaitFor(2)) ++met;  // Only if the other has started before this one ended.
      ended.Arrive();
    });
  }
  ASSERT_TRUE(ended.WaitFor(2));
  EXPECT_EQ(met, 2);
}

TEST(LanePoolTest, OneLaneRunsTasksInTheOrderSubmitted) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 1, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  std::vector<int> order;
  Gate ended;
  for (int i = 0; i < 100; ++i) {
    (*pool)->Submit({TaskSize::kLarge}, [&, i](BorrowedLane&) {
      order.push_back(i);
      ended.Arrive();
    });
  }
  ASSERT_TRUE(ended.WaitFor(100));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(LanePoolTest, TellsWhatRunsAndWhatWaits) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 1, kStagingBytes);
  ASSERT_TRUE(pool.ok());
  Gate started;
  Gate go_on;
  (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) {
    started.Arrive();
    EXPECT_TRUE(go_on.WaitFor(1));
  });
  ASSERT_TRUE(started.WaitFor(1));
  (*pool)->Submit({TaskSize::kLarge}, [](BorrowedLane&) {});
  (*pool)->Submit({TaskSize::kSmall}, [](BorrowedLane&) {});
  EXPECT_EQ((*pool)->load().busy, 1);
  EXPECT_EQ((*pool)->load().waiting, 2u);
  go_on.Arrive();
  for (int i = 0; i < 2000 && (*pool)->load().busy > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // Until the next look.
  }
  EXPECT_EQ((*pool)->load().busy, 0);
  EXPECT_EQ((*pool)->load().waiting, 0u);
}

TEST(LanePoolTest, SmallTasksRunWhileLargeOnesHoldEveryLaneTheyMay) {
  FakeDevice device;
  constexpr int kLanes = 3;
  // Several rounds: no large task may come to the first lane, whether that lane is idle already or about to be idle.
  for (int round = 0; round < 20; ++round) {
    auto pool = LanePool::Create(device, kLanes, kStagingBytes, kPollTime);
    ASSERT_TRUE(pool.ok());
    Gate large_started;
    Gate go_on;
    Gate small_ended;
    Gate large_ended;
    std::atomic<bool> went_on{true};
    Gate awake;
    for (int i = 0; i < kLanes; ++i) {
      (*pool)->Submit({TaskSize::kSmall}, [&](BorrowedLane&) {
        awake.Arrive();
        if (!awake.WaitFor(kLanes)) went_on = false;
      });
    }
    ASSERT_TRUE(awake.WaitFor(kLanes));
    for (int i = 0; i < 2 * kLanes; ++i) {
      (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) {
        large_started.Arrive();
        if (!go_on.WaitFor(1)) went_on = false;
        large_ended.Arrive();
      });
    }
    ASSERT_TRUE(large_started.WaitFor(kLanes - 1));
    for (int i = 0; i < 10; ++i) (*pool)->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { small_ended.Arrive(); });
    EXPECT_TRUE(small_ended.WaitFor(10));
    go_on.Arrive();
    EXPECT_TRUE(large_ended.WaitFor(2 * kLanes));
    EXPECT_TRUE(went_on);
    if (HasFailure()) return;
  }
}

// Small requests come.
void NoteSmallRequests(LanePool& pool) {
  for (int i = 0; i < 2; ++i) pool.NoteSmallRequest();
}

// Then they count as coming to the end of the test.
constexpr std::chrono::hours kLongGap{1};

TEST(LanePoolTest, LargeTasksRunOnAThirdOfTheLanesWhileSmallRequestsCome) {
  FakeDevice device;
  constexpr int kLanes = 6;
  auto pool = LanePool::Create(device, kLanes, kStagingBytes, kPollTime, kLongGap);
  ASSERT_TRUE(pool.ok());
  Gate started;
  Gate ended;
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  constexpr int kLarge = 50;
  NoteSmallRequests(**pool);
  for (int i = 0; i < kLarge; ++i) {
    (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) {
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      started.Arrive();
      EXPECT_TRUE(started.WaitFor(kLanes / 3));                   // So many at the same time,
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // and no more.
      --running;
      ended.Arrive();
    });
  }
  EXPECT_TRUE(ended.WaitFor(kLarge));
  EXPECT_EQ(most, kLanes / 3);
}

TEST(LanePoolTest, AMeasurementTakesNoLargeTasksPlace) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 3, kStagingBytes, kPollTime, kLongGap);  // Large tasks then have one of them.
  ASSERT_TRUE(pool.ok());
  NoteSmallRequests(**pool);
  Gate measuring;
  Gate large_ended;
  Gate measured;
  (*pool)->Submit({TaskSize::kMeasurement}, [&](BorrowedLane&) {
    measuring.Arrive();
    EXPECT_TRUE(large_ended.WaitFor(10));
    measured.Arrive();
  });
  ASSERT_TRUE(measuring.WaitFor(1));
  for (int i = 0; i < 10; ++i) (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { large_ended.Arrive(); });
  EXPECT_TRUE(measured.WaitFor(1));
}

// Large tasks that are held back go on once small requests have stopped, all of them.
TEST(LanePoolTest, LargeTasksGoOnWhenSmallRequestsHaveStopped) {
  FakeDevice device;
  constexpr int kLanes = 6;
  auto pool = LanePool::Create(device, kLanes, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  NoteSmallRequests(**pool);
  Gate go_on;
  for (int i = 0; i < kLanes / 3; ++i) {
    (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { EXPECT_TRUE(go_on.WaitFor(1)); });
  }
  Gate started;
  Gate ended;
  for (int i = 0; i < kLanes - 1; ++i) {
    (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) {
      started.Arrive();
      EXPECT_TRUE(started.WaitFor(kLanes - 1));  // All at the same time.
      ended.Arrive();
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // Small requests count as coming for 100 ms.
  go_on.Arrive();
  EXPECT_TRUE(ended.WaitFor(kLanes - 1));
}

TEST(LanePoolTest, DestructionRunsWhatIsHeldBack) {
  FakeDevice device;
  std::atomic<int> ran{0};
  {
    auto pool = LanePool::Create(device, 6, kStagingBytes, kPollTime);
    ASSERT_TRUE(pool.ok());
    NoteSmallRequests(**pool);
    for (int i = 0; i < 50; ++i) (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { ++ran; });
  }
  EXPECT_EQ(ran, 50);
}

// Each small task submits the next, so that there is always one.
TEST(LanePoolTest, SmallTasksWithoutEndDoNotHoldUpALargeOne) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 2, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  std::atomic<bool> stop{false};
  Gate chains_ended;
  std::function<void(BorrowedLane&)> link = [&](BorrowedLane&) {
    if (stop) return chains_ended.Arrive();
    (*pool)->Submit({TaskSize::kSmall}, link);
  };
  constexpr int kChains = 8;
  for (int i = 0; i < kChains; ++i) (*pool)->Submit({TaskSize::kSmall}, link);
  Gate ran;
  (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { ran.Arrive(); });
  EXPECT_TRUE(ran.WaitFor(1));
  stop = true;
  EXPECT_TRUE(chains_ended.WaitFor(kChains));
}

// A lane that is held while tasks are queued, and the order in which they then run.
class QueuedTasksTest : public testing::Test {
 protected:
  // With one lane, which runs all.
  QueuedTasksTest() : pool_(*LanePool::Create(device_, 1, kStagingBytes, kPollTime)) {
    pool_->Submit({TaskSize::kLarge}, [this](BorrowedLane&) {
      held_.Arrive();
      EXPECT_TRUE(go_on_.WaitFor(1));
    });
    EXPECT_TRUE(held_.WaitFor(1));
  }
  void Submit(const TaskInfo& info, char name) {
    ++num_submitted_;
    pool_->Submit(info, [this, name](BorrowedLane&) {
      order_.push_back(name);
      ended_.Arrive();
    });
  }
  std::string Order() {
    go_on_.Arrive();
    EXPECT_TRUE(ended_.WaitFor(num_submitted_));
    return order_;
  }

  FakeDevice device_;
  Gate held_;
  Gate go_on_;
  Gate ended_;
  int num_submitted_ = 0;
  std::string order_;
  std::unique_ptr<LanePool> pool_;
};

constexpr FairCaller kGreedy = {.name = "greedy", .connection = "1"};
constexpr FairCaller kModest = {.name = "modest", .connection = "1"};

TEST_F(QueuedTasksTest, CallersTakeTurns) {
  for (const TaskSize size : {TaskSize::kLarge, TaskSize::kSmall}) {
    for (int i = 0; i < 50; ++i) Submit({.size = size, .estimated_ns = 1000, .caller = kGreedy}, 'g');
    for (int i = 0; i < 2; ++i) Submit({.size = size, .estimated_ns = 1000, .caller = kModest}, 'm');
  }
  const std::string order = Order();
  EXPECT_EQ(std::count(order.begin(), order.begin() + 12, 'm'), 4) << order;
}

TEST_F(QueuedTasksTest, LongTasksOfOneWaitForShortOnesOfAnother) {
  for (int i = 0; i < 5; ++i) Submit({.size = TaskSize::kLarge, .estimated_ns = 10'000, .caller = kGreedy}, 'g');
  for (int i = 0; i < 40; ++i) Submit({.size = TaskSize::kSmall, .estimated_ns = 1000, .caller = kModest}, 'm');
  const std::string order = Order();
  EXPECT_NEAR(static_cast<double>(order.find('g')), 10, 1) << order;
}

TEST_F(QueuedTasksTest, YardsticksAreBelowAll) {
  for (int i = 0; i < 3; ++i) Submit({.size = TaskSize::kYardstick, .caller = kModest}, 'y');
  Submit({.size = TaskSize::kLarge, .estimated_ns = 1'000'000, .caller = kGreedy}, 'l');
  Submit({.size = TaskSize::kMeasurement, .estimated_ns = 2'000'000, .caller = kGreedy}, 'b');
  Submit({.size = TaskSize::kSmall, .estimated_ns = 3'000'000, .caller = kGreedy}, 's');
  EXPECT_EQ(Order(), "lbsyyy");
}

TEST(LanePoolTest, OneYardstickRunsAtATime) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 6, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  std::atomic<int> running{0};
  Gate ended;
  for (int i = 0; i < 20; ++i) {
    (*pool)->Submit({TaskSize::kYardstick}, [&](BorrowedLane&) {
      EXPECT_EQ(++running, 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // For another to come.
      --running;
      ended.Arrive();
    });
    (*pool)->Submit({TaskSize::kLarge}, [](BorrowedLane&) {});
  }
  EXPECT_TRUE(ended.WaitFor(20));
}

// One that runs takes no large task's place, and the lanes that it leaves are theirs.
TEST(LanePoolTest, AYardstickTakesNoLargeTasksPlace) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 3, kStagingBytes, kPollTime, kLongGap);  // Large tasks then have one of them.
  ASSERT_TRUE(pool.ok());
  NoteSmallRequests(**pool);
  Gate comparing;
  Gate large_ended;
  Gate compared;
  (*pool)->Submit({TaskSize::kYardstick}, [&](BorrowedLane&) {
    comparing.Arrive();
    EXPECT_TRUE(large_ended.WaitFor(10));
    compared.Arrive();
  });
  ASSERT_TRUE(comparing.WaitFor(1));
  for (int i = 0; i < 10; ++i) (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { large_ended.Arrive(); });
  EXPECT_TRUE(compared.WaitFor(1));
}

TEST(LanePoolTest, AYardstickDoesNotStartBesideAsManyLargeTasksAsMay) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 6, kStagingBytes, kPollTime, kLongGap);
  ASSERT_TRUE(pool.ok());
  NoteSmallRequests(**pool);
  Gate running, go_on, compared;
  for (int i = 0; i < 6 / 3; ++i) {
    (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) {
      running.Arrive();
      EXPECT_TRUE(go_on.WaitFor(1));
    });
  }
  ASSERT_TRUE(running.WaitFor(6 / 3));
  (*pool)->Submit({TaskSize::kYardstick}, [&](BorrowedLane&) { compared.Arrive(); });
  for (int i = 0; i < 100; ++i) {  // All lanes but those of the large ones have had their chance to take it.
    Gate small;
    (*pool)->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { small.Arrive(); });
    ASSERT_TRUE(small.WaitFor(1));
  }
  EXPECT_EQ(compared.arrived(), 0);
  go_on.Arrive();
  EXPECT_TRUE(compared.WaitFor(1));
}

// One by one, at once or later: the lane's thread polls, is about to sleep, or sleeps.
TEST(LanePoolTest, TasksThatComeOneByOneRunWhenever) {
  FakeDevice device;
  for (const int lanes : {1, 2}) {
    Gate ran;
    auto pool = LanePool::Create(device, lanes, kStagingBytes, kPollTime);
    ASSERT_TRUE(pool.ok());
    for (int i = 0; i < 1000; ++i) {
      const auto next = std::chrono::steady_clock::now() + i % 7 * kPollTime / 3;
      while (std::chrono::steady_clock::now() < next) std::this_thread::yield();
      (*pool)->Submit({static_cast<TaskSize>(i % 4)}, [&](BorrowedLane&) { ran.Arrive(); });
      ASSERT_TRUE(ran.WaitFor(i + 1)) << "task " << i;
    }
  }
}

// Tasks that followed each other closely, and then none: a thread that goes on looking for the next takes what it gets
// of a core.
TEST(LanePoolTest, WithoutTasksThreadsSleep) {
  FakeDevice device;
  Gate ran;
  auto pool = LanePool::Create(device, 2, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  for (int i = 0; i < 200; ++i) {
    (*pool)->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { ran.Arrive(); });
    ASSERT_TRUE(ran.WaitFor(i + 1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // For the threads to sleep; they tell nobody.
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));  // A lane that polled would use most of it.
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20);
}

TEST(LanePoolTest, ALaneIsBorrowedByOneTaskAtATime) {
  FakeDevice device;
  constexpr int kLanes = 3;
  auto pool = LanePool::Create(device, kLanes, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  Gate ended;
  for (int i = 0; i < 300; ++i) {
    (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane& lane) {
      const int now = ++running;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      lane.in.host.data()[0] = std::byte{1};  // Not atomic: TSan sees a lane that two tasks share.
      --running;
      ended.Arrive();
    });
  }
  ASSERT_TRUE(ended.WaitFor(300));
  EXPECT_LE(most, kLanes);
}

TEST(LanePoolTest, MemoryIsLookedAtAfterTasks) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 1, kStagingBytes, kPollTime);
  ASSERT_TRUE(pool.ok());
  device.free_memory_bytes = 1234;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((*pool)->free_memory_bytes() != 1234 && std::chrono::steady_clock::now() < limit) {
    Gate ran;
    (*pool)->Submit({TaskSize::kSmall}, [&](BorrowedLane&) { ran.Arrive(); });
    ASSERT_TRUE(ran.WaitFor(1));
  }
  EXPECT_EQ((*pool)->free_memory_bytes(), 1234u);
}

TEST(LanePoolTest, DestructionRunsWhatIsQueued) {
  FakeDevice device;
  std::atomic<int> ran{0};
  {
    auto pool = LanePool::Create(device, 2, kStagingBytes, kPollTime);
    ASSERT_TRUE(pool.ok());
    for (int i = 0; i < 50; ++i) (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { ++ran; });
  }
  EXPECT_EQ(ran, 50);
}

TEST(LanePoolTest, StagingIsMadeAtStartUpForEveryLane) {
  FakeDevice device;
  auto one = LanePool::Create(device, 1, kStagingBytes);
  auto four = LanePool::Create(device, 4, kStagingBytes);
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_GE((*one)->staging_bytes(), 4 * kMaxReplyPayloadBytes);
  EXPECT_EQ((*four)->staging_bytes() - kStagingBytes, 4 * ((*one)->staging_bytes() - kStagingBytes));
  EXPECT_EQ((*four)->used_staging_bytes(), (*four)->staging_bytes() - kStagingBytes);
}

TEST(LanePoolTest, CreateFailsAsTheDeviceDoes) {
  FakeDevice device;
  device.memory_status = absl::ResourceExhaustedError("no memory");
  EXPECT_EQ(LanePool::Create(device, 2, kStagingBytes, kPollTime).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace prefixd
