#include "server/rpc/traffic.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/tcp_connections.h"

namespace prefixd {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kUnread = 20 * kMiB;

class TrafficTest : public testing::Test {
 protected:
  // So many bytes come, and the connection is looked at.
  bool Look(int64_t bytes) { return traffic_.Look(bytes_ += bytes); }
  // As many looks as it takes until the connection is to be closed, each after so many bytes; 0: a thousand do not.
  int LooksUntilClosed(int64_t bytes) {
    for (int i = 1; i <= 1000; ++i) {
      if (Look(bytes)) return i;
    }
    return 0;
  }

  Traffic traffic_{kUnread};
  int64_t bytes_ = 0;
};

TEST_F(TrafficTest, MessagesExplainWhatComes) {
  traffic_.CountCall();
  for (int i = 0; i < 1000; ++i) {
    traffic_.CountMessage(4 * kMiB);
    ASSERT_FALSE(Look(4 * kMiB + 4 * kMiB / 100)) << i << ": with frames and records";
  }
  for (int i = 0; i < 1'000'000; ++i) traffic_.CountMessage(1);
  EXPECT_FALSE(Look(1'000'000 * 40)) << "of a byte each";
  EXPECT_FALSE(Look(0));
}

TEST_F(TrafficTest, WhatBelongsToNoCallIsTooMuchInTwoLooks) {
  EXPECT_FALSE(Look(2 * kMiB)) << "a call may be on its way";
  EXPECT_TRUE(Look(kMiB));
}

TEST_F(TrafficTest, ACallThatIsHandedOverLateExplainsIt) {
  EXPECT_FALSE(Look(2 * kMiB));
  traffic_.CountCall();
  EXPECT_FALSE(Look(2 * kMiB));
  traffic_.CountMessage(4 * kMiB);
  EXPECT_FALSE(Look(4 * kMiB));
}

TEST_F(TrafficTest, LittleAtATimeDoesNoHarm) {
  EXPECT_EQ(LooksUntilClosed(Traffic::kGrowthBytes), 0);
  EXPECT_EQ(LooksUntilClosed(2 * Traffic::kGrowthBytes), 2);
}

// As of header blocks that are too large: gRPC hands over a call that is cancelled.
TEST_F(TrafficTest, CallsThatAreCancelledUnreadExplainNothing) {
  int num_looks = 0;
  for (bool is_over = false; !is_over && num_looks < 100; ++num_looks) {
    for (int i = 0; i < 50; ++i) {
      traffic_.CountCall();
      traffic_.CountCallDone(/*is_empty=*/true);
    }
    is_over = Look(50 * 16'000);
  }
  EXPECT_EQ(num_looks, 3);
}

TEST_F(TrafficTest, ManySmallCallsThatAreCancelledMay) {
  for (int look = 0; look < 1000; ++look) {
    for (int i = 0; i < 100; ++i) {
      traffic_.CountCall();
      traffic_.CountCallDone(/*is_empty=*/true);
    }
    ASSERT_FALSE(Look(100 * 400)) << look;
  }
}

TEST_F(TrafficTest, WhatCallsThatHaveEndedLeaveUnreadMayStillCome) {
  for (int i = 0; i < 100; ++i) traffic_.CountCall();
  EXPECT_FALSE(Look(0));
  for (int i = 0; i < 100; ++i) traffic_.CountCallDone(/*is_empty=*/false);  // Refused, say.
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Look(100 * kUnread / 10)) << i;
}

TEST_F(TrafficTest, NobodySavesUp) {
  for (int i = 0; i < 10'000; ++i) {
    traffic_.CountCall();
    traffic_.CountMessage(1000);
    traffic_.CountCallDone(/*is_empty=*/false);
    ASSERT_FALSE(Look(1100));
  }
  EXPECT_LE(LooksUntilClosed(kMiB), kUnread / kMiB + 3);
}

TEST_F(TrafficTest, AProxyIsTrusted) {
  traffic_.Trust();
  EXPECT_EQ(LooksUntilClosed(kMiB), 0);
}

class StrangeTrafficTest : public TcpConnections {
 protected:
  // The connection brings a MiB, which is read.
  static void Bring(const Connected& both) {
    const std::vector<char> bytes(1 << 16);
    for (int i = 0; i < 16; ++i) {
      ASSERT_EQ(send(both.far, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
      std::vector<char> taken(bytes.size());
      for (size_t left = taken.size(); left > 0;) {
        const ssize_t got = recv(both.near, taken.data(), left, 0);
        if (got < 0 && errno == EAGAIN) continue;
        ASSERT_GT(got, 0);
        left -= static_cast<size_t>(got);
      }
    }
  }
  // Whose connections are closed within some looks before which they bring something.
  std::vector<std::string> ClosedWhile(const std::vector<Connected>& all) {
    std::vector<std::string> addresses;
    for (int look = 0; look < 4; ++look) {
      for (const Connected& one : all) {
        if (IsOpen(one)) Bring(one);
      }
      for (const ConnectionTable::Ended& ended : table_.CloseStrange()) {
        EXPECT_EQ(ended.cause, ConnectionTable::Cause::kStrange);
        addresses.push_back(ended.address);
      }
    }
    return addresses;
  }
  std::shared_ptr<Traffic> TrafficOf(const Connected& both) {
    IpAddress loopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    return table_.TrafficOf(loopback, both.port);
  }
};

TEST_F(StrangeTrafficTest, EndsItsConnectionAndShutsItsAddressOut) {
  const Connected strange = Add("10.0.0.1");
  const Connected quiet = Add("10.0.0.1");
  const Connected caller = Add("10.0.0.2");
  TrafficOf(caller)->CountCall();
  EXPECT_EQ(ClosedWhile({strange, caller}), (std::vector<std::string>{"10.0.0.1"}));
  EXPECT_FALSE(IsOpen(strange));
  EXPECT_TRUE(IsOpen(quiet));
  EXPECT_TRUE(IsOpen(caller));
  EXPECT_FALSE(table_.CountCancelled("10.0.0.1", strange.port)) << "its calls have ended with it";
  const Connected again = Connect();
  const absl::Status refused = table_.Add(again.near, "10.0.0.1", again.port);
  EXPECT_EQ(refused.message(), "it has sent what belongs to no call, and is shut out for 5 s");
}

TEST_F(StrangeTrafficTest, ProgramsOfThisHostAreNotShutOutTogether) {
  const Connected strange = Add("127.0.0.1");
  EXPECT_EQ(ClosedWhile({strange}).size(), 1u);
  Add("127.0.0.1");
}

TEST_F(StrangeTrafficTest, WhatWaitsToBeReadIsNotCounted) {
  const Connected slow = Add("10.0.0.1");
  for (int look = 0; look < 4; ++look) {
    const std::vector<char> bytes(1 << 20);
    send(slow.far, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    EXPECT_TRUE(table_.CloseStrange().empty());
  }
}

TEST_F(StrangeTrafficTest, TrafficIsKeptAsLongAsItsConnection) {
  const Connected both = Add("10.0.0.1");
  const std::shared_ptr<Traffic> traffic = TrafficOf(both);
  ASSERT_NE(traffic, nullptr);
  table_.CloseStrange();
  EXPECT_FALSE(table_.IsEmpty());
  EXPECT_EQ(TrafficOf(both), traffic);
  close(both.near);
  open_.erase(std::find(open_.begin(), open_.end(), both.near));
  std::this_thread::sleep_for(std::chrono::milliseconds(110));  // For the clock: closed ones are looked for rarely.
  table_.CloseStrange();
  EXPECT_EQ(TrafficOf(both), nullptr);
  EXPECT_TRUE(table_.IsEmpty());
}

TEST_F(StrangeTrafficTest, AnotherConnectionFromTheSamePlaceIsNotMistakenForIt) {
  const Connected both = Add("10.0.0.1");
  const std::shared_ptr<Traffic> traffic = TrafficOf(both);
  const int other = dup(both.near);  // As to another address that the server listens on.
  open_.push_back(other);
  ASSERT_TRUE(table_.Add(other, "10.0.0.1", both.port).ok());
  EXPECT_EQ(TrafficOf(both), traffic);
  EXPECT_EQ(ClosedWhile({both}).size(), 1u) << "the other one is not looked at";
}

TEST_F(StrangeTrafficTest, ConnectionsOfUnixSocketsAreNotLookedAt) {
  std::array<int, 2> both = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both.data()), 0);
  open_.insert(open_.end(), {both[0], both[1]});
  ASSERT_TRUE(table_.Add(both[0], "uid:1", 0).ok());
  EXPECT_TRUE(ClosedWhile({Connected{.near = both[0], .far = both[1], .port = 0}}).empty());
}

}  // namespace
}  // namespace prefixd
