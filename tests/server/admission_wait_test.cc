// Streams that wait until what they hold may be charged.
#include "server/call/admission.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/admission_fixture.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

TEST(AdmissionWaitTest, WaitsUntilItFits) {
  Admission admission(Whole(10, 100));
  auto holder = admission.Admit(At("a"));
  auto waiter = admission.Admit(At("b"));
  ASSERT_TRUE(holder->Charge(80).ok());
  Gate granted;
  EXPECT_FALSE(waiter->ChargeOrWait(50, [&] { granted.Arrive(); }));
  EXPECT_EQ(admission.in_use().bytes, 80u);
  holder->ShrinkTo(60);
  EXPECT_EQ(granted.arrived(), 0);
  holder->ShrinkTo(50);
  ASSERT_TRUE(granted.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 100u);
  waiter->ShrinkTo(0);
  EXPECT_EQ(admission.in_use().bytes, 50u);
  EXPECT_TRUE(waiter->ChargeOrWait(50, [] { FAIL(); }));
}

TEST(AdmissionWaitTest, WhatIsNotWaitedForAnyMoreIsNotCharged) {
  Admission admission(Whole(10, 100));
  auto holder = admission.Admit(At("a"));
  ASSERT_TRUE(holder->Charge(80).ok());
  {
    auto waiter = admission.Admit(At("b"));
    EXPECT_FALSE(waiter->ChargeOrWait(50, [] { FAIL(); }));
    EXPECT_TRUE(waiter->StopWaiting() != nullptr);
    EXPECT_TRUE(waiter->StopWaiting() == nullptr);
    EXPECT_FALSE(waiter->ChargeOrWait(50, [] { FAIL(); }));  // The ticket's end ends it too.
  }
  holder->ShrinkTo(0);
  EXPECT_EQ(admission.in_use().bytes, 0u);
  EXPECT_EQ(admission.in_use().requests, 1u);
}

// Who comes later on a connection does not take what one of it waits for; who comes on another does.
TEST(AdmissionWaitTest, WhoWaitsComesBeforeLaterOnesOfItsConnection) {
  Admission admission(Whole(10, 100));
  auto holder = admission.Admit(At("a", 1));
  auto waiter = admission.Admit(At("a", 1));
  auto later = admission.Admit(At("a", 1));
  auto other = admission.Admit(At("a", 2));
  ASSERT_TRUE(holder->Charge(80).ok());
  Gate granted;
  EXPECT_FALSE(waiter->ChargeOrWait(30, [&] { granted.Arrive(); }));
  EXPECT_FALSE(later->Charge(10).ok());
  EXPECT_TRUE(other->Charge(10).ok());
  holder->ShrinkTo(0);
  ASSERT_TRUE(granted.WaitFor(1));
  EXPECT_TRUE(later->Charge(10).ok());
}

// A stream keeps bytes between its messages. They are no reason to have it wait where nobody could give it any.
TEST(AdmissionWaitTest, WhoHoldsBytesAloneWaitsForNobody) {
  Admission admission({.requests = 10, .bytes = 100, .share_percent = 50});
  auto stream = admission.Admit(At("a", 1));
  ASSERT_TRUE(stream->ChargeOrWait(40, [] { FAIL(); }));
  stream->ShrinkTo(10);
  EXPECT_TRUE(stream->ChargeOrWait(40, [] { FAIL(); }));  // Above a quarter, a connection's share.
  stream->ShrinkTo(10);
  EXPECT_TRUE(stream->Charge(40).ok());
  stream->ShrinkTo(10);
  // Nor when the others have ended while it waited.
  auto other = admission.Admit(At("a", 1));
  ASSERT_TRUE(other->Charge(5).ok());
  Gate granted;
  ASSERT_FALSE(stream->ChargeOrWait(40, [&] { granted.Arrive(); }));
  other->ShrinkTo(0);
  ASSERT_TRUE(granted.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 50u);
}

// Who waits for the rest gives back what he has no use for before that, or two would wait for each other.
TEST(AdmissionWaitTest, WhoWaitsMayGiveBackAndWaitForThatToo) {
  Admission admission(Whole(10, 100));
  auto one = admission.Admit(At("a", 1));
  auto two = admission.Admit(At("a", 1));
  ASSERT_TRUE(one->Charge(40).ok());
  ASSERT_TRUE(two->Charge(40).ok());
  Gate first, second;
  ASSERT_FALSE(one->ChargeOrWait(30, [&] { first.Arrive(); }));
  ASSERT_FALSE(two->ChargeOrWait(30, [&] { second.Arrive(); }));
  one->ShrinkWaiting(10, 70);
  ASSERT_TRUE(second.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 80u);  // 10 of one, 70 of two.
  EXPECT_EQ(first.arrived(), 0);
  two->ShrinkWaiting(10, 60);  // It does not wait any more.
  EXPECT_EQ(admission.in_use().bytes, 70u);
  two->ShrinkTo(30);
  ASSERT_TRUE(first.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 100u);
  two->ShrinkTo(0);
  one->ShrinkTo(0);
  EXPECT_EQ(admission.in_use().bytes, 0u);
  EXPECT_TRUE(two->Charge(100).ok());  // Nobody is waited for.
}

// A proxy may say of a connection's callers now their address and now a name that looks like it.
TEST(AdmissionWaitTest, WhoseShareAConnectionUsesStays) {
  Admission admission(Whole(10, 100));
  auto holder = admission.Admit(At("b"));
  ASSERT_TRUE(holder->Charge(80).ok());
  Gate granted;
  auto waiter = admission.Admit(At("a", 1));
  ASSERT_FALSE(waiter->ChargeOrWait(50, [&] { granted.Arrive(); }));
  auto other = admission.Admit({.name = "a", .connection = "a:1", .is_address = false});
  waiter->StopWaiting();
  holder->ShrinkTo(0);
  ASSERT_FALSE(waiter->ChargeOrWait(101, [&] { granted.Arrive(); }));
  waiter->StopWaiting();
  EXPECT_TRUE(waiter->ChargeOrWait(50, [] { FAIL(); }));
}

// Streams that are charged for messages as these come, and give back as they work, all come to their end.
TEST(AdmissionWaitTest, ManyThatWaitAllGetTheirTurn) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  constexpr int kStreams = 40;
  constexpr int kMessages = 50;
  Admission admission({.requests = 4 * kStreams, .bytes = 1000, .bytes_per_request = 5, .share_percent = 50});
  std::mt19937 random(seed);
  Gate done;
  struct Stream {
    Admission::Ticket ticket;
    Gate granted;
  };
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Stream>());
    streams.back()->ticket = *admission.Admit(At(StrCat("host", i % 3), i % 7));
  }
  for (int i = 0; i < kStreams; ++i) {
    threads.emplace_back([&, i, own_seed = random()] {
      std::mt19937 own(own_seed);
      int waited = 0;
      Stream& stream = *streams[i];
      for (int message = 1; message <= kMessages; ++message) {
        const uint64_t bytes = 1 + own() % 400;
        if (!stream.ticket.ChargeOrWait(bytes, [&stream] { stream.granted.Arrive(); })) {
          if (!stream.granted.WaitFor(++waited)) return;
        }
        if (own() % 2 == 0) std::this_thread::yield();
        stream.ticket.ShrinkTo(0);
      }
      done.Arrive();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done.arrived(), kStreams);
  streams.clear();
  EXPECT_EQ(admission.in_use().bytes, 0u);
  EXPECT_EQ(admission.in_use().requests, 0u);
}

}  // namespace
}  // namespace prefixd
