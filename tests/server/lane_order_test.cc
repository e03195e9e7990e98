// Which task runs next, and on how many lanes: by size, by caller, and while small requests come.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "server/lanes/lane_pool.h"
#include "server/request.h"
#include "tests/server/fake_device.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

TEST(LaneOrderTest, SmallTasksRunWhileLargeOnesHoldEveryLaneTheyMay) {
  FakeDevice device;
  constexpr int kLanes = 3;
  // Several rounds: no large task may come to the first lane, whether that lane is idle already or about to be idle.
  for (int round = 0; round < 20; ++round) {
    auto pool = LanePool::Create(device, kLanes, kStagingBytes, kLanePollTime);
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

// Each small task submits the next, so that there is always one.
TEST(LaneOrderTest, SmallTasksWithoutEndDoNotHoldUpALargeOne) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 2, kStagingBytes, kLanePollTime);
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

// Small requests come.
void NoteSmallRequests(LanePool& pool) {
  for (int i = 0; i < 2; ++i) pool.NoteSmallRequest();
}

// Then they count as coming to the end of the test.
constexpr std::chrono::hours kLongGap{1};

TEST(LaneOrderTest, LargeTasksRunOnAThirdOfTheLanesWhileSmallRequestsCome) {
  FakeDevice device;
  constexpr int kLanes = 6;
  auto pool = LanePool::Create(device, kLanes, kStagingBytes, kLanePollTime, kLongGap);
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

// Large tasks that are held back go on once small requests have stopped, all of them.
TEST(LaneOrderTest, LargeTasksGoOnWhenSmallRequestsHaveStopped) {
  FakeDevice device;
  constexpr int kLanes = 6;
  auto pool = LanePool::Create(device, kLanes, kStagingBytes, kLanePollTime);
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

TEST(LaneOrderTest, DestructionRunsWhatIsHeldBack) {
  FakeDevice device;
  std::atomic<int> ran{0};
  {
    auto pool = LanePool::Create(device, 6, kStagingBytes, kLanePollTime);
    ASSERT_TRUE(pool.ok());
    NoteSmallRequests(**pool);
    for (int i = 0; i < 50; ++i) (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { ++ran; });
  }
  EXPECT_EQ(ran, 50);
}

// One that runs takes no large task's place, and the lanes that it leaves are theirs.
TEST(LaneOrderTest, MeasurementsAndYardsticksTakeNoLargeTasksPlace) {
  for (const TaskSize size : {TaskSize::kMeasurement, TaskSize::kYardstick}) {
    FakeDevice device;
    auto pool =
        LanePool::Create(device, 3, kStagingBytes, kLanePollTime, kLongGap);  // Large tasks then have one of them.
    ASSERT_TRUE(pool.ok());
    NoteSmallRequests(**pool);
    Gate running;
    Gate large_ended;
    Gate ended;
    (*pool)->Submit({size}, [&](BorrowedLane&) {
      running.Arrive();
      EXPECT_TRUE(large_ended.WaitFor(10));
      ended.Arrive();
    });
    ASSERT_TRUE(running.WaitFor(1));
    for (int i = 0; i < 10; ++i) (*pool)->Submit({TaskSize::kLarge}, [&](BorrowedLane&) { large_ended.Arrive(); });
    EXPECT_TRUE(ended.WaitFor(1));
  }
}

// ---- Yardsticks ----------------------------------------------------------------------------------------------------
TEST(LaneOrderTest, OneYardstickRunsAtATime) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 6, kStagingBytes, kLanePollTime);
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

TEST(LaneOrderTest, AYardstickDoesNotStartBesideAsManyLargeTasksAsMay) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 6, kStagingBytes, kLanePollTime, kLongGap);
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

// ---- Turns ---------------------------------------------------------------------------------------------------------
// A lane that is held while tasks are queued, and the order in which they then run.
class QueuedTasksTest : public testing::Test {
 protected:
  // With one lane, which runs all.
  QueuedTasksTest() : pool_(*LanePool::Create(device_, 1, kStagingBytes, kLanePollTime)) {
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

}  // namespace
}  // namespace prefixd
