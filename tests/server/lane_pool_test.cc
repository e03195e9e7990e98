#include "server/lane_pool.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"
#include "server/request.h"
#include "tests/server/fake_device.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

TEST(LanePoolTest, TwoLanesRunTwoTasksAtTheSameTime) {
  FakeDevice device;
  auto pool = LanePool::Create(device, 2);
  ASSERT_TRUE(pool.ok()) << pool.status();
  Gate started;
  Gate ended;
  std::atomic<int> met{0};
  for (int i = 0; i < 2; ++i) {
    (*pool)->Submit([&](BorrowedLane&) {
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
  auto pool = LanePool::Create(device, 1);
  ASSERT_TRUE(pool.ok());
  std::vector<int> order;
  Gate ended;
  for (int i = 0; i < 100; ++i) {
    (*pool)->Submit([&, i](BorrowedLane&) {
      order.push_back(i);
      ended.Arrive();
    });
  }
  ASSERT_TRUE(ended.WaitFor(100));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(LanePoolTest, ALaneIsBorrowedByOneTaskAtATime) {
  FakeDevice device;
  constexpr int kLanes = 3;
  auto pool = LanePool::Create(device, kLanes);
  ASSERT_TRUE(pool.ok());
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  Gate ended;
  for (int i = 0; i < 300; ++i) {
    (*pool)->Submit([&](BorrowedLane& lane) {
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

TEST(LanePoolTest, DestructionRunsWhatIsQueued) {
  FakeDevice device;
  std::atomic<int> ran{0};
  {
    auto pool = LanePool::Create(device, 2);
    ASSERT_TRUE(pool.ok());
    for (int i = 0; i < 50; ++i) (*pool)->Submit([&](BorrowedLane&) { ++ran; });
  }
  EXPECT_EQ(ran, 50);
}

TEST(LanePoolTest, StagingIsMadeAtStartUpForEveryLane) {
  FakeDevice device;
  auto one = LanePool::Create(device, 1);
  auto four = LanePool::Create(device, 4);
  ASSERT_TRUE(one.ok() && four.ok());
  EXPECT_GE((*one)->staging_bytes(), 4 * kMaxReplyPayloadBytes);
  EXPECT_EQ((*four)->staging_bytes(), 4 * (*one)->staging_bytes());
}

TEST(LanePoolTest, CreateFailsAsTheDeviceDoes) {
  FakeDevice device;
  device.memory_status = absl::ResourceExhaustedError("no memory");
  EXPECT_EQ(LanePool::Create(device, 2).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace prefixd
