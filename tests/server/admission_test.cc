// The budgets of the whole server, and each caller's share of them.
#include "server/call/admission.h"

#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/admission_fixture.h"

namespace prefixd {
namespace {

TEST(AdmissionTest, RefusesTheRequestThatIsOneTooMany) {
  Admission admission(Whole(2, 100, 10));
  auto first = admission.Admit(At("a"));
  auto second = admission.Admit(At("a"));
  ASSERT_TRUE(first.ok() && second.ok());
  auto third = admission.Admit(At("b"));
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(third.status()), "REQUEST_BUDGET");
  EXPECT_EQ(QuotaSubject(third.status()), "server");
  { Admission::Ticket released = *std::move(first); }
  EXPECT_TRUE(admission.Admit(At("b")).ok());
}

TEST(AdmissionTest, RefusesTheByteThatIsOneTooMany) {
  Admission admission(Whole(10, 100, 1));
  auto most = admission.Admit(At("a"));
  ASSERT_TRUE(most.ok());
  ASSERT_TRUE(most->Charge(97).ok());
  EXPECT_EQ(ErrorReason(most->Charge(3)), "BYTE_BUDGET");
  EXPECT_EQ(ErrorReason(most->Charge(~uint64_t{0})), "BYTE_BUDGET");
  auto next = admission.Admit(At("b"));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(ErrorReason(next->Charge(2)), "BYTE_BUDGET");
  EXPECT_TRUE(next->Charge(1).ok());
  EXPECT_EQ(ErrorReason(admission.Admit(At("c")).status()), "BYTE_BUDGET");
}

TEST(AdmissionTest, TicketGivesBackWhatItTook) {
  Admission admission(Whole(10, 100, 20));
  {
    auto ticket = admission.Admit(At("a"));
    ASSERT_TRUE(ticket.ok());
    ASSERT_TRUE(ticket->Charge(60).ok());
    Admission::Ticket moved = *std::move(ticket);
    EXPECT_EQ(admission.in_use().requests, 1u);
    EXPECT_EQ(admission.in_use().bytes, 80u);
    moved.ShrinkTo(70);
    EXPECT_EQ(admission.in_use().bytes, 80u);
    moved.ShrinkTo(50);
    EXPECT_EQ(admission.in_use().bytes, 70u);
  }
  EXPECT_EQ(admission.in_use().requests, 0u);
  EXPECT_EQ(admission.in_use().bytes, 0u);
}

// A request that is about to be answered leaves its place to the next one. Its answer is still charged.
TEST(AdmissionTest, APlaceMayBeLeftBeforeTheBytes) {
  Admission admission(Whole(1, 100));
  auto ticket = admission.Admit(At("a"));
  ASSERT_TRUE(ticket.ok() && ticket->Charge(90).ok());
  ticket->LeavePlace(60);
  EXPECT_EQ(admission.in_use().requests, 0u);
  EXPECT_EQ(admission.in_use().bytes, 60u);
  auto next = admission.Admit(At("a"));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(ErrorReason(next->Charge(50)), "BYTE_BUDGET");
  ASSERT_TRUE(next->Charge(40).ok());
  { Admission::Ticket released = *std::move(ticket); }
  EXPECT_EQ(admission.in_use().requests, 1u);
  EXPECT_EQ(admission.in_use().bytes, 40u);
}

TEST(AdmissionTest, ClosedRefusesWithTheReasonGiven) {
  Admission admission(Whole(10, 100));
  auto before = admission.Admit(At("a"));
  admission.Close(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "stopping"));
  EXPECT_EQ(ErrorReason(admission.Admit(At("a")).status()), "DRAINING");
  EXPECT_EQ(admission.in_use().requests, 1u);
  EXPECT_TRUE(before->Charge(1).ok());  // It was let in.
}

TEST(AdmissionTest, NeverExceedsItsBudgetsUnderThreads) {
  constexpr uint64_t kMaxRequests = 3;
  Admission admission(Whole(kMaxRequests, 30, 10));
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 2000; ++round) {
        auto ticket = admission.Admit(At("a", i % 3));
        const Admission::Use use = admission.in_use();
        if (use.requests > kMaxRequests || use.bytes > 30) exceeded = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(admission.in_use().requests, 0u);
  EXPECT_EQ(admission.in_use().bytes, 0u);
}

// ---- Shares --------------------------------------------------------------------------------------------------------
TEST(AdmissionShareTest, EachCallerGetsHalfOfWhatTheOthersLeave) {
  Admission admission({.requests = 64, .bytes = 1 << 20, .share_percent = 50});
  const auto first = TakeAll(admission, Known("first"));
  const auto second = TakeAll(admission, Known("second"));
  const auto third = TakeAll(admission, Known("third"));
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(second.size(), 16u);
  EXPECT_EQ(third.size(), 8u);
  const absl::Status refused = admission.Admit(Known("first")).status();
  EXPECT_EQ(ErrorReason(refused), "REQUEST_BUDGET");
  EXPECT_EQ(QuotaSubject(refused), "first");
}

TEST(AdmissionShareTest, ConnectionsOfAnAddressShareItsShare) {
  Admission admission({.requests = 64, .bytes = 1 << 20, .share_percent = 50});
  const auto first = TakeAll(admission, At("a", 1));
  const auto second = TakeAll(admission, At("a", 2));
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(second.size(), 8u);
  std::vector<std::vector<Admission::Ticket>> more;
  for (int i = 3; i < 100; ++i) more.push_back(TakeAll(admission, At("a", i)));
  EXPECT_EQ(admission.in_use().requests, 32u + 16u);  // An address's share, and one each of what is kept for newcomers.
  EXPECT_EQ(TakeAll(admission, At("b")).size(), 4u);  // A connection's share of what is left: a quarter of 16.
}

TEST(AdmissionShareTest, WhoHasNothingGetsWhatHeAsksForIfItFitsAround) {
  Admission admission({.requests = 64, .bytes = 1000, .share_percent = 50});
  auto first = admission.Admit(At("a", 1));
  ASSERT_TRUE(first->Charge(240).ok());
  auto more = admission.Admit(At("a", 1));
  EXPECT_FALSE(more->Charge(20).ok());  // 250 is the connection's share.
  auto second = admission.Admit(At("a", 2));
  EXPECT_TRUE(second->Charge(260).ok());  // 500 is the address's.
  auto third = admission.Admit(At("a", 3));
  EXPECT_FALSE(third->Charge(251).ok());  // And 250 more are kept for those who have nothing.
  EXPECT_TRUE(third->Charge(250).ok());
  EXPECT_FALSE(first->Charge(1).ok());
  auto other = admission.Admit(At("b"));
  EXPECT_FALSE(other->Charge(251).ok());
  EXPECT_TRUE(other->Charge(250).ok());
  EXPECT_EQ(admission.in_use().bytes, 1000u);
}

// The bytes of the requests themselves are not what a caller "has": a stream that waits for its first bytes would else
// never get more than its connection's share, which may be less than a message.
TEST(AdmissionShareTest, OnlyChargedBytesCountAsHavingSomething) {
  Admission admission({.requests = 64, .bytes = 1000, .bytes_per_request = 10, .share_percent = 50});
  auto idle = admission.Admit(At("a", 1));
  auto ticket = admission.Admit(At("a", 1));
  EXPECT_TRUE(ticket->Charge(900).ok());
}

// Whatever an address does, with any number of connections, a quarter of everything is there for the next.
TEST(AdmissionShareTest, RandomCallersNeverTakeWhatIsAnothers) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937 random(seed);
  constexpr uint64_t kBytes = 100'000;
  Admission admission({.requests = 200, .bytes = kBytes, .bytes_per_request = 10, .share_percent = 50});
  std::deque<Admission::Ticket> greedy;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 3 > 0 || greedy.empty()) {
      auto ticket = admission.Admit(At("greedy", static_cast<int>(random() % 50)));
      if (ticket.ok()) {
        ticket->Charge(random() % 20'000).IgnoreError();
        greedy.push_back(*std::move(ticket));
      }
    } else {
      greedy.erase(greedy.begin() + static_cast<std::ptrdiff_t>(random() % greedy.size()));
    }
    ASSERT_LE(admission.in_use().bytes, kBytes);
    ASSERT_LE(admission.in_use().requests, 150u);
    auto modest = admission.Admit(At("modest"));
    ASSERT_TRUE(modest.ok()) << modest.status();
    ASSERT_TRUE(modest->Charge(kBytes / 4 - 10).ok());
  }
}

}  // namespace
}  // namespace prefixd
