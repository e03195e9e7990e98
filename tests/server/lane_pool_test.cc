// The lanes' threads: tasks run, one on each lane, until there are none; then they sleep. lane_order_test.cc has who is
// next.
#include "server/lanes/lane_pool.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/request.h"
#include "tests/server/fake_device.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

TEST(LanePoolTest, TwoLanesRunTwoTasksAtTheSameTime) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 2, kStagingBytes, kLanePollTime);
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
  auto pool = LanePool::Create(device, 1, kStagingBytes, kLanePollTime);
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

// One by one, at once or later: the lane's thread polls, is about to sleep, or sleeps.
TEST(LanePoolTest, TasksThatComeOneByOneRunWhenever) {
  FakeDevice device;
  for (const int lanes : {1, 2}) {
    Gate ran;
    auto pool = LanePool::Create(device, lanes, kStagingBytes, kLanePollTime);
    ASSERT_TRUE(pool.ok());
    for (int i = 0; i < 1000; ++i) {
      const auto next = std::chrono::steady_clock::now() + i % 7 * kLanePollTime / 3;
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
  auto pool = LanePool::Create(device, 2, kStagingBytes, kLanePollTime);
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
  auto pool = LanePool::Create(device, kLanes, kStagingBytes, kLanePollTime);
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
  auto pool = LanePool::Create(device, 1, kStagingBytes, kLanePollTime);
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
    auto pool = LanePool::Create(device, 2, kStagingBytes, kLanePollTime);
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
  EXPECT_EQ(LanePool::Create(device, 2, kStagingBytes, kLanePollTime).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace prefixd
