// Streams that wait until what they hold may be charged.
#include "server/call/admission.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
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
  one->ShrinkWaiting(10, 70, /*is_idle=*/true);
  ASSERT_TRUE(second.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 80u);  // 10 of one, 70 of two.
  EXPECT_EQ(first.arrived(), 0);
  two->ShrinkWaiting(10, 60, /*is_idle=*/true);  // It does not wait any more.
  EXPECT_EQ(admission.in_use().bytes, 70u);
  two->ShrinkTo(30);
  ASSERT_TRUE(first.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 100u);
  two->ShrinkTo(0);
  one->ShrinkTo(0);
  EXPECT_EQ(admission.in_use().bytes, 0u);
  EXPECT_TRUE(two->Charge(100).ok());  // Nobody is waited for.
}

// Where a share is full of what is kept by those who wait, nobody else could give any of them what he waits for.
TEST(AdmissionWaitTest, WhereAllWaitTheFirstGetsMoreThanTheShare) {
  for (const bool is_address : {false, true}) {
    Admission admission({.requests = 10, .bytes = 400, .share_percent = 50});
    const Caller caller = {.name = "a", .connection = "a:1", .is_address = is_address};
    const uint64_t share = is_address ? 100 : 200;
    auto one = admission.Admit(caller);
    auto two = admission.Admit(caller);
    auto newcomer = admission.Admit(caller);
    Gate first, second, third;
    ASSERT_TRUE(one->Charge(share / 2).ok());
    ASSERT_TRUE(two->Charge(share / 2).ok());
    ASSERT_FALSE(newcomer->ChargeOrWait(30, [&] { third.Arrive(); }));
    ASSERT_FALSE(one->ChargeOrWait(30, [&] { first.Arrive(); }));
    ASSERT_FALSE(two->ChargeOrWait(30, [&] { second.Arrive(); }));
    one->ShrinkWaiting(share / 2, share / 2 + 30, /*is_idle=*/true);
    absl::SleepFor(absl::Milliseconds(20));                              // Until what is granted too early would be.
    EXPECT_EQ(first.arrived() + second.arrived() + third.arrived(), 0);  // The other may give something back.
    two->ShrinkWaiting(share / 2, share / 2 + 30, /*is_idle=*/true);
    ASSERT_TRUE(first.WaitFor(1));
    absl::SleepFor(absl::Milliseconds(20));  // As above.
    EXPECT_EQ(second.arrived() + third.arrived(), 0);
    EXPECT_EQ(admission.in_use().bytes, share + 30);
    // And again, now the second.
    ASSERT_FALSE(one->ChargeOrWait(40, [] { FAIL(); }));
    one->ShrinkWaiting(share / 2, share / 2 + 30, /*is_idle=*/true);
    ASSERT_TRUE(second.WaitFor(1));
    EXPECT_EQ(admission.in_use().bytes, share + 30);
    EXPECT_EQ(third.arrived(), 0);  // Who keeps nothing is not what the others wait for.
    one->StopWaiting();
    one->ShrinkTo(0);
    two->ShrinkTo(0);
    ASSERT_TRUE(third.WaitFor(1));
    newcomer->ShrinkTo(0);
    // Nothing is left of those who were idle: who waits for another who does not wait gets nothing.
    ASSERT_TRUE(one->Charge(share / 2).ok());
    ASSERT_TRUE(two->Charge(share / 2).ok());
    ASSERT_FALSE(one->ChargeOrWait(30, [] { FAIL(); }));
    one->ShrinkWaiting(share / 2, share / 2 + 30, /*is_idle=*/true);
    absl::SleepFor(absl::Milliseconds(20));  // As above.
    EXPECT_EQ(admission.in_use().bytes, share);
    one->StopWaiting();
  }
}

// But never more than there is.
TEST(AdmissionWaitTest, WhereAllWaitNobodyGetsMoreThanThereIs) {
  Admission admission(Whole(10, 100));
  auto one = admission.Admit(At("a", 1));
  auto two = admission.Admit(At("a", 1));
  ASSERT_TRUE(one->Charge(50).ok());
  ASSERT_TRUE(two->Charge(50).ok());
  ASSERT_FALSE(one->ChargeOrWait(10, [] { FAIL(); }));
  ASSERT_FALSE(two->ChargeOrWait(10, [] { FAIL(); }));
  one->ShrinkWaiting(50, 60, /*is_idle=*/true);
  two->ShrinkWaiting(50, 60, /*is_idle=*/true);
  absl::SleepFor(absl::Milliseconds(20));  // Until what is granted too early would be.
  EXPECT_EQ(admission.in_use().bytes, 100u);
  one->StopWaiting();
  two->StopWaiting();
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
