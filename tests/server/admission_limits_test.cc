// Limits of single callers, beside their shares.
#include "server/call/admission.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/server/admission_fixture.h"
#include "tests/server/gate.h"

namespace prefixd {
namespace {

CallerLimitsTable Table(std::initializer_list<std::pair<std::string, CallerLimits>> lines) {
  CallerLimitsTable table;
  for (const auto& [name, limits] : lines) EXPECT_TRUE(table.Add(name, limits));
  return table;
}

Caller On(const std::string& connection, const std::string& name) {
  return {.name = name, .connection = connection, .is_address = false};
}

TEST(AdmissionLimitsTest, RequestsOfACaller) {
  Admission admission(Whole(100, 100));
  admission.SetCallerLimits(Table({{"alice", {.requests = 2}}, {"*", {.requests = 3}}, {"root", {}}}));
  const auto alice = TakeAll(admission, Known("alice"));
  EXPECT_EQ(alice.size(), 2u);
  const absl::Status refused = admission.Admit(Known("alice")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(refused), "CALLER_REQUESTS");
  EXPECT_EQ(QuotaSubject(refused), "alice");
  EXPECT_EQ(TakeAll(admission, Known("bob")).size(), 3u);  // Gone at once, as the others are below.
  EXPECT_EQ(TakeAll(admission, At("10.0.0.1")).size(), 3u);
  EXPECT_EQ(TakeAll(admission, Known("root")).size(), 98u);  // A line without limits: he is not everybody.
}

TEST(AdmissionLimitsTest, WhoHasNothingDoesNotGetMoreThanHisLimit) {
  Admission admission({.requests = 64, .bytes = 1000, .share_percent = 50});
  admission.SetCallerLimits(Table({{"*", {.bytes = 300}}}));
  for (const Caller& caller : {Known("alice"), At("10.0.0.1")}) {
    auto ticket = admission.Admit(caller);
    ASSERT_TRUE(ticket.ok());
    const absl::Status refused = ticket->Charge(301);
    EXPECT_EQ(ErrorReason(refused), "CALLER_BYTES");
    EXPECT_EQ(QuotaSubject(refused), caller.name);
    EXPECT_TRUE(ticket->Charge(300).ok());
    auto other = admission.Admit({.name = caller.name, .connection = "other", .is_address = caller.is_address});
    EXPECT_EQ(ErrorReason(other->Charge(1)), "CALLER_BYTES");
    ticket->ShrinkTo(299);
    EXPECT_TRUE(other->Charge(1).ok());
  }
}

TEST(AdmissionLimitsTest, TheLeastOfLimitAndShare) {
  Admission admission({.requests = 64, .bytes = 1 << 20, .share_percent = 50});
  admission.SetCallerLimits(Table({{"small", {.requests = 10}},
                                   {"large", {.requests = 60}},
                                   {"10.0.0.1", {.requests = 16}},
                                   {"whole", {.share_percent = 100}},
                                   {"10.0.0.2", {.share_percent = 100}},
                                   {"tenth", {.share_percent = 10}}}));
  EXPECT_EQ(TakeAll(admission, Known("small")).size(), 10u);
  EXPECT_EQ(TakeAll(admission, Known("large")).size(), 32u);
  EXPECT_EQ(TakeAll(admission, At("10.0.0.1", 1)).size(), 8u);  // A connection has a share of its caller's limit.
  EXPECT_EQ(TakeAll(admission, Known("whole")).size(), 64u);
  EXPECT_EQ(TakeAll(admission, At("10.0.0.2")).size(), 64u);
  EXPECT_EQ(TakeAll(admission, Known("tenth")).size(), 7u);
  const auto held = TakeAll(admission, Known("large"));
  EXPECT_EQ(ErrorReason(admission.Admit(Known("large")).status()), "REQUEST_BUDGET");
}

TEST(AdmissionLimitsTest, ConnectionsWithRequestsOfACaller) {
  for (const bool is_address : {false, true}) {
    Admission admission(Whole(100, 100));
    admission.SetCallerLimits(Table({{"alice", {.connections = 2}}}));
    const auto admit = [&](const std::string& connection) {
      return admission.Admit({.name = "alice", .connection = connection, .is_address = is_address});
    };
    auto first = admit("1"), again = admit("1"), second = admit("2");
    ASSERT_TRUE(first.ok() && again.ok() && second.ok());
    const absl::Status refused = admit("3").status();
    EXPECT_EQ(ErrorReason(refused), "CALLER_CONNECTIONS");
    EXPECT_EQ(QuotaSubject(refused), "alice");
    EXPECT_TRUE(admit("2").ok());
    { Admission::Ticket released = *std::move(first); }
    EXPECT_FALSE(admit("3").ok());  // The other request on it is still there.
    again->LeavePlace(0);           // It is answered; that it is not gone yet does not matter.
    EXPECT_TRUE(admit("3").ok());
  }
}

// A clock that stands still until it is moved.
struct FakeClock {
  std::shared_ptr<std::atomic<int64_t>> now_ns = std::make_shared<std::atomic<int64_t>>(int64_t{1'000'000'000'000});
  RateLimit::Time operator()() const { return RateLimit::Time(std::chrono::nanoseconds(now_ns->load())); }
  void Pass(std::chrono::nanoseconds time) const { *now_ns += time.count(); }
};

TEST(AdmissionLimitsTest, RequestsOfASecondWithTheTimeUntilTheNext) {
  const FakeClock clock;
  Admission admission(Whole(100, 100), clock);
  admission.SetCallerLimits(Table({{"alice", {.requests_per_second = 4}}}));
  const auto refusal = [&] { return admission.Admit(Known("alice")).status(); };
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(refusal().ok());
  absl::Status refused = refusal();
  EXPECT_EQ(ErrorReason(refused), "CALLER_RATE");
  EXPECT_EQ(QuotaSubject(refused), "alice");
  EXPECT_EQ(RetryDelay(refused), std::chrono::milliseconds(250));
  clock.Pass(std::chrono::nanoseconds(249'999'999));
  EXPECT_EQ(RetryDelay(refusal()), std::chrono::nanoseconds(1));
  clock.Pass(std::chrono::nanoseconds(1));  // Exactly so.
  EXPECT_TRUE(refusal().ok());
  EXPECT_EQ(RetryDelay(refusal()), std::chrono::milliseconds(250));
  clock.Pass(std::chrono::hours(1));  // No more than a second's worth is saved.
  EXPECT_EQ(TakeAll(admission, Known("alice")).size(), 4u);
  EXPECT_TRUE(admission.Admit(Known("bob")).ok());
}

TEST(AdmissionLimitsTest, WhoIsRefusedForAnotherReasonKeepsHisRate) {
  const FakeClock clock;
  Admission admission(Whole(100, 100), clock);
  admission.SetCallerLimits(Table({{"alice", {.requests = 1, .requests_per_second = 2}}}));
  {
    auto ticket = admission.Admit(Known("alice"));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(ErrorReason(admission.Admit(Known("alice")).status()), "CALLER_REQUESTS");
  }
  EXPECT_TRUE(admission.Admit(Known("alice")).ok());
  EXPECT_EQ(ErrorReason(admission.Admit(Known("alice")).status()), "CALLER_RATE");
}

TEST(AdmissionLimitsTest, QuestionsAreAnsweredWhateverTheLimits) {
  const FakeClock clock;
  Admission admission(Whole(100, 100, 10), clock);
  admission.SetCallerLimits(Table({{"*", {.requests = 1, .bytes = 10, .connections = 1, .requests_per_second = 1}}}));
  auto request = admission.Admit(On("1", "alice"));
  ASSERT_TRUE(request.ok());
  for (int i = 0; i < 3; ++i) {
    auto question = admission.Admit(On("2", "alice"), Admission::Kind::kQuestion);
    ASSERT_TRUE(question.ok()) << question.status();
    EXPECT_TRUE(question->Charge(50).ok());
    EXPECT_FALSE(question->Charge(50).ok());  // The server's budget is another matter.
  }
  // Nor do they take from the limits.
  request = absl::UnknownError("given back");
  clock.Pass(std::chrono::seconds(1));
  auto question = admission.Admit(On("2", "alice"), Admission::Kind::kQuestion);
  EXPECT_EQ(ErrorReason(admission.Admit(On("1", "alice")).status()), "CALLER_BYTES");
  question = absl::UnknownError("given back");
  EXPECT_TRUE(admission.Admit(On("1", "alice")).ok());
}

TEST(AdmissionLimitsTest, OtherLimitsHoldAtOnce) {
  const FakeClock clock;
  Admission admission(Whole(100, 100), clock);
  auto tickets = TakeAll(admission, Known("alice"));
  ASSERT_EQ(tickets.size(), 100u);
  tickets.resize(5);
  admission.SetCallerLimits(Table({{"alice", {.requests = 4}}}));
  EXPECT_EQ(ErrorReason(admission.Admit(Known("alice")).status()), "CALLER_REQUESTS");
  tickets.resize(3);
  EXPECT_TRUE(admission.Admit(Known("alice")).ok());
  admission.SetCallerLimits(Table({{"*", {.requests_per_second = 1}}}));
  EXPECT_EQ(TakeAll(admission, Known("alice")).size(), 1u);
  admission.SetCallerLimits(Table({{"alice", {.requests_per_second = 1000}}}));
  EXPECT_EQ(RetryDelay(admission.Admit(Known("alice")).status()), std::chrono::milliseconds(1));
  admission.SetCallerLimits({});
  EXPECT_EQ(TakeAll(admission, Known("alice")).size(), 97u);
}

TEST(AdmissionLimitsTest, AStreamWaitsForBytesOfItsLimit) {
  Admission admission(Whole(10, 1000));
  admission.SetCallerLimits(Table({{"alice", {.bytes = 100}}}));
  auto holder = admission.Admit(On("1", "alice"));
  auto waiter = admission.Admit(On("2", "alice"));
  ASSERT_TRUE(holder->Charge(80).ok());
  Gate granted;
  EXPECT_FALSE(waiter->ChargeOrWait(50, [&] { granted.Arrive(); }));
  EXPECT_EQ(ErrorReason(holder->Charge(10)), "CALLER_BYTES");  // Who waits comes first.
  holder->ShrinkTo(51);
  auto other = admission.Admit(Known("bob"));
  EXPECT_TRUE(other->ChargeOrWait(500, [] { FAIL(); }));
  EXPECT_EQ(granted.arrived(), 0);
  admission.SetCallerLimits(Table({{"alice", {.bytes = 101}}}));  // What there is more of, those who wait get.
  ASSERT_TRUE(granted.WaitFor(1));
  EXPECT_EQ(admission.in_use().bytes, 51u + 50u + 500u);
}

// What requests take themselves is of the limit too, though who has no more than that counts as having nothing.
TEST(AdmissionLimitsTest, AStreamThatWaitsDoesNotGetMoreThanItsLimitEither) {
  Admission admission({.requests = 64, .bytes = 1000, .bytes_per_request = 10, .share_percent = 50});
  admission.SetCallerLimits(Table({{"alice", {.bytes = 100}}, {"bob", {.bytes = 100}}}));
  std::vector<Admission::Ticket> idle;
  for (int i = 0; i < 8; ++i) idle.push_back(*admission.Admit(Known("alice")));
  Gate granted, done;
  EXPECT_FALSE(idle.front().ChargeOrWait(30, [&] { granted.Arrive(); }));
  // Another's wait comes behind it, and is over once both were looked at.
  auto holder = admission.Admit(Known("bob"));
  auto waiter = admission.Admit(Known("bob"));
  ASSERT_TRUE(holder->Charge(80).ok());
  EXPECT_FALSE(waiter->ChargeOrWait(50, [&] { done.Arrive(); }));
  holder->ShrinkTo(0);
  ASSERT_TRUE(done.WaitFor(1));
  EXPECT_EQ(granted.arrived(), 0);
  idle.pop_back();
  ASSERT_TRUE(granted.WaitFor(1));
}

// Nothing is kept of callers who come once, but for the second in which their rate is used up: or coming back would
// renew it.
TEST(AdmissionLimitsTest, ManyOthersDoNotRenewARateAndAreForgotten) {
  const FakeClock clock;
  Admission admission(Whole(100, 100), clock);
  admission.SetCallerLimits(Table({{"*", {.requests_per_second = 1}}}));
  EXPECT_TRUE(admission.Admit(Known("alice")).ok());
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(admission.Admit(At(StrCat("10.0.0.", i))).ok());
  EXPECT_EQ(ErrorReason(admission.Admit(Known("alice")).status()), "CALLER_RATE");
  EXPECT_GE(admission.num_known_callers(), 10'000u);
  for (int i = 0; i < 100'000; ++i) {
    clock.Pass(std::chrono::milliseconds(10));  // So 100 of them are within a second.
    ASSERT_TRUE(admission.Admit(At(StrCat("10.1.0.", i))).ok());
  }
  EXPECT_LE(admission.num_known_callers(), 500u);
  EXPECT_TRUE(admission.Admit(Known("alice")).ok());
}

// Any callers, limits that change, any order: nobody gets more than his limits, all is given back.
TEST(AdmissionLimitsTest, RandomCallersKeepToTheirLimits) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(StrCat("seed ", seed));
  std::mt19937 random(seed);
  Admission admission({.requests = 50, .bytes = 10'000, .bytes_per_request = 10, .share_percent = 50});
  struct Held {
    std::string name, connection;
    uint64_t bytes = 10;
    Admission::Ticket ticket;
  };
  std::deque<Held> held;
  CallerLimits limits;
  const auto of = [&](const std::string& name) {
    uint64_t bytes = 0, requests = 0;
    std::set<std::string> connections;
    for (const Held& one : held) {
      if (one.name != name) continue;
      ++requests;
      bytes += one.bytes;
      connections.insert(one.connection);
    }
    return CallerLimits{.requests = requests, .bytes = bytes, .connections = connections.size()};
  };
  for (int step = 0; step < 20'000; ++step) {
    if (step % 500 == 0) {
      held.clear();
      ASSERT_EQ(admission.in_use().requests, 0u);
      ASSERT_EQ(admission.in_use().bytes, 0u);
      limits = {.requests = 1 + random() % 20, .bytes = 10 + random() % 3000, .connections = 1 + random() % 4};
      admission.SetCallerLimits(Table({{"*", limits}}));
    }
    const std::string name = StrCat("caller", random() % 3);
    const std::string connection = StrCat("connection", random() % 6);
    const CallerLimits before = of(name);
    if (random() % 3 == 0 && !held.empty()) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
      continue;
    }
    auto ticket = admission.Admit({.name = name, .connection = connection, .is_address = name == "caller0"});
    if (ticket.ok()) {
      held.push_back({.name = name, .connection = connection, .ticket = *std::move(ticket)});
      const uint64_t more = random() % 500;
      if (held.back().ticket.Charge(more).ok()) held.back().bytes += more;
    } else if (ErrorReason(ticket.status()) == "CALLER_REQUESTS") {
      ASSERT_EQ(*before.requests, *limits.requests);
    } else if (ErrorReason(ticket.status()) == "CALLER_CONNECTIONS") {
      ASSERT_EQ(*before.connections, *limits.connections);
    } else if (ErrorReason(ticket.status()) == "CALLER_BYTES") {
      ASSERT_GT(*before.bytes + 10, *limits.bytes);
    }
    const CallerLimits now = of(name);
    ASSERT_LE(*now.requests, *limits.requests);
    ASSERT_LE(*now.bytes, *limits.bytes);
    ASSERT_LE(*now.connections, *limits.connections);
  }
}

}  // namespace
}  // namespace prefixd
