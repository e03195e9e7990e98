// What a session is charged for, from a message's arrival to the end of the call.
#include "server/call/held_bytes.h"

#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

constexpr uint64_t kMaxMessageBytes = uint64_t{4} << 20;

TEST(HeldBytesTest, AMessageIsChargedWithItsRepliesUntilItWasRun) {
  HeldBytes held(CallShape::kStream);
  EXPECT_EQ(held.AddArrival(100), 100 + 900);
  const uint64_t queued = held.QueueArrival();
  EXPECT_EQ(queued, 100);
  EXPECT_EQ(held.num_bytes(), 100 + 900);
  EXPECT_EQ(held.AddArrival(10), 10);  // Its replies take the place of the first one's.
  EXPECT_TRUE(held.has_arrival());
  held.RemoveQueued(queued);
  EXPECT_EQ(held.num_bytes(), 10 + 900);
  held.DropArrival();
  held.AddSent(30);
  held.SettleReplies();
  EXPECT_EQ(held.num_bytes(), 30);
  EXPECT_EQ(held.AtEnd(), 30);
}

TEST(HeldBytesTest, AnIdleStreamKeepsItsOpenGroupAndWhatGrpcHolds) {
  HeldBytes held(CallShape::kStream);
  held.AddArrival(kMaxMessageBytes);
  EXPECT_EQ(held.AddOpenGroup(5000), 5000);
  held.RemoveQueued(held.QueueArrival());
  held.AddSent(kMaxMessageBytes);
  held.SettleReplies();
  EXPECT_EQ(held.num_bytes(), 5000 + (64 << 10));
  EXPECT_EQ(held.AtEnd(), 64 << 10);
}

TEST(HeldBytesTest, AUnaryCallKeepsItsReply) {
  HeldBytes held(CallShape::kUnary);
  EXPECT_EQ(held.AddArrival(kMaxMessageBytes), kMaxMessageBytes + kMaxReplyPayloadBytes);
  held.RemoveQueued(held.QueueArrival());
  held.AddSent(kMaxReplyPayloadBytes);
  EXPECT_EQ(held.AtEnd(), kMaxReplyPayloadBytes);
}

TEST(HeldBytesTest, ACarryIsHeldAllTheTimeAndToTheEndWhereItGoesOut) {
  for (const CallShape shape : {CallShape::kStream, CallShape::kUnary}) {
    HeldBytes held(shape);
    held.AddArrival(1000);
    EXPECT_EQ(held.AddOpenGroup(700), 700);
    held.DropArrival();
    held.SettleReplies();
    EXPECT_EQ(held.num_bytes(), 700);
    EXPECT_EQ(held.AtEnd(), 0);
    held.AddSentAtEnd(650);
    EXPECT_EQ(held.AtEnd(), 650);
  }
}

// Whatever comes: what was charged covers what is held, and a stream with a budget of the most that one holds goes on.
TEST(HeldBytesTest, AStreamNeverHoldsMoreThanIsChargedNorThanTheMost) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937 random(seed);
  HeldBytes held(CallShape::kStream);
  std::vector<uint64_t> queue;
  uint64_t charged = held.AddOpenGroup(kMaxOpenGroupBytes);
  for (int i = 0; i < 100'000; ++i) {
    if (!held.has_arrival()) {
      charged += held.AddArrival(1 + random() % kMaxMessageBytes);
    } else if (queue.size() < Flow::kMaxIncoming) {
      queue.push_back(held.QueueArrival());
    }
    if (!queue.empty() && random() % 2 == 0) {
      held.RemoveQueued(queue.front());
      queue.erase(queue.begin());
      held.AddSent(random() % kMaxReplyPayloadBytes);
      if (queue.empty() && !held.has_arrival()) held.SettleReplies();
    }
    ASSERT_LE(held.num_bytes(), charged);
    charged = held.num_bytes();  // As the session gives back.
    ASSERT_LE(charged, HeldBytes::MostOfStream(kMaxMessageBytes));
  }
}

}  // namespace
}  // namespace prefixd
