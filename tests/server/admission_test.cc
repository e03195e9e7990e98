#include "server/call/admission.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

TEST(AdmissionTest, RefusesTheRequestThatIsOneTooMany) {
  Admission admission(2, 100);
  auto first = admission.Admit(10);
  auto second = admission.Admit(10);
  ASSERT_TRUE(first.ok() && second.ok());
  auto third = admission.Admit(10);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(third.status()), "REQUEST_BUDGET");
  { Admission::Ticket released = *std::move(first); }
  EXPECT_TRUE(admission.Admit(10).ok());
}

TEST(AdmissionTest, RefusesTheByteThatIsOneTooMany) {
  Admission admission(10, 100);
  auto most = admission.Admit(99);
  ASSERT_TRUE(most.ok());
  EXPECT_EQ(ErrorReason(admission.Admit(2).status()), "BYTE_BUDGET");
  EXPECT_EQ(ErrorReason(admission.Admit(~uint64_t{0}).status()), "BYTE_BUDGET");
  EXPECT_TRUE(admission.Admit(1).ok());
}

TEST(AdmissionTest, TicketGivesBackWhatItTook) {
  Admission admission(10, 100);
  {
    auto ticket = admission.Admit(60);
    ASSERT_TRUE(ticket.ok());
    Admission::Ticket moved = *std::move(ticket);
    EXPECT_EQ(admission.in_use().requests, 1u);
    EXPECT_EQ(admission.in_use().bytes, 60u);
  }
  EXPECT_EQ(admission.in_use().requests, 0u);
  EXPECT_EQ(admission.in_use().bytes, 0u);
}

// A request that is about to be answered leaves its place to the next one. Its answer is still charged.
TEST(AdmissionTest, APlaceMayBeLeftBeforeTheBytes) {
  Admission admission(1, 100);
  auto ticket = admission.Admit(90);
  ASSERT_TRUE(ticket.ok());
  ticket->LeavePlace(60);
  ticket->LeavePlace(0);
  EXPECT_EQ(admission.in_use().requests, 0u);
  EXPECT_EQ(admission.in_use().bytes, 60u);
  EXPECT_EQ(ErrorReason(admission.Admit(50).status()), "BYTE_BUDGET");
  const auto next = admission.Admit(40);
  ASSERT_TRUE(next.ok());
  { Admission::Ticket released = *std::move(ticket); }
  EXPECT_EQ(admission.in_use().requests, 1u);
  EXPECT_EQ(admission.in_use().bytes, 40u);
}

TEST(AdmissionTest, ClosedRefusesWithTheReasonGiven) {
  Admission admission(10, 100);
  auto before = admission.Admit(1);
  admission.Close(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "stopping"));
  EXPECT_EQ(ErrorReason(admission.Admit(1).status()), "DRAINING");
  EXPECT_EQ(admission.in_use().requests, 1u);
}

TEST(AdmissionTest, NeverExceedsItsBudgetsUnderThreads) {
  constexpr uint64_t kMaxRequests = 3;
  Admission admission(kMaxRequests, 30);
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        auto ticket = admission.Admit(10);
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

}  // namespace
}  // namespace prefixd
