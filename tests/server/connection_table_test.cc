#include "server/rpc/connection_table.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/tcp_connections.h"

namespace prefixd {
namespace {

int OpenSocket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

class ConnectionTableTest : public testing::Test {
 protected:
  ~ConnectionTableTest() override {
    for (const int fd : open_) close(fd);
  }
  bool Add(const std::string& address) {
    const int fd = OpenSocket();
    open_.push_back(fd);
    return table_.Add(fd, address, /*port=*/0).ok();
  }

  std::vector<int> open_;
  ConnectionTable table_{{.connections = 4, .connections_per_address = 2}};
};

TEST_F(ConnectionTableTest, BoundsConnectionsOfAnAddressAndInAll) {
  EXPECT_TRUE(Add("a"));
  EXPECT_TRUE(Add("a"));
  EXPECT_FALSE(Add("a"));
  EXPECT_TRUE(Add("b"));
  EXPECT_TRUE(Add("c"));
  EXPECT_FALSE(Add("d"));
  EXPECT_EQ(table_.CountOpen(), 4u);
}

TEST_F(ConnectionTableTest, WhatWasClosedMakesRoom) {
  EXPECT_TRUE(Add("a"));
  EXPECT_TRUE(Add("a"));
  close(open_[0]);
  open_[0] = -1;
  EXPECT_TRUE(Add("a"));
  EXPECT_FALSE(Add("a"));
}

TEST_F(ConnectionTableTest, WhatWasClosedDoesNotCount) {
  EXPECT_TRUE(Add("a"));
  EXPECT_TRUE(Add("b"));
  close(open_[0]);
  open_[0] = -1;
  EXPECT_EQ(table_.CountOpen(), 1u);
}

// Each address is one who takes as many as he may get.
TEST_F(ConnectionTableTest, AnAddressHasHalfOfWhatTheOthersLeave) {
  ConnectionTable table({.connections = 100, .connections_per_address = 60});
  const auto take_all = [&](const std::string& address) {
    int count = 0;
    for (;; ++count) {
      open_.push_back(OpenSocket());
      if (!table.Add(open_.back(), address, /*port=*/0).ok()) return count;
    }
  };
  EXPECT_EQ(take_all("a"), 50);
  EXPECT_EQ(take_all("b"), 25);
  EXPECT_EQ(take_all("c"), 13);
  EXPECT_EQ(take_all("d"), 6);
  EXPECT_EQ(take_all("a"), 0) << "what it has stays open, and it gets no more";
  EXPECT_EQ(table.CountOpen(), 94u);
  for (const std::string newcomer : {"e", "f", "g"}) EXPECT_GE(take_all(newcomer), 1) << newcomer;
  EXPECT_EQ(table.CountOpen(), 100u);
}

TEST_F(ConnectionTableTest, ARefusalSaysWhatTheAddressHasAndMayHave) {
  const int fd = OpenSocket();
  open_.push_back(fd);
  const auto refusal = [fd](ConnectionTable::Limits limits) {
    ConnectionTable table(limits);
    EXPECT_TRUE(table.Add(fd, "a", /*port=*/0).ok());
    EXPECT_TRUE(table.Add(fd, "b", /*port=*/0).ok());
    return std::string(table.Add(fd, "b", /*port=*/0).message());
  };
  EXPECT_EQ(
      refusal({.connections = 3, .connections_per_address = 3}),
      "it has 1 of the 1 connections that it may have, which is half of what other addresses leave of 3: close some, "
      "or raise --max-connections and the limit of open files");
  EXPECT_EQ(
      refusal({.connections = 9, .connections_per_address = 1}),
      "it has 1 of the 1 connections that it may have, which is --max-connections-per-address: close some, or raise "
      "it");
}

// A descriptor's number soon belongs to something else.
TEST_F(ConnectionTableTest, AnotherSocketOfTheSameNumberIsAnother) {
  EXPECT_TRUE(Add("a"));
  EXPECT_TRUE(Add("a"));
  close(open_[0]);
  open_[0] = OpenSocket();
  EXPECT_TRUE(Add("a"));
}

class CancelledCallsTest : public TcpConnections {
 protected:
  // Returns how many calls were cancelled until connections are to be closed.
  uint64_t CancelTooMany(const std::string& address, uint16_t port) {
    uint64_t count = 1;
    while (count < 10 * ConnectionTable::kMinCancelledPerSecond && !table_.CountCancelled(address, port)) ++count;
    return count;
  }
};

TEST_F(CancelledCallsTest, TooManyEndTheConnectionWithWhatWasNotRead) {
  const Connected hasty = Add("10.0.0.1");
  const Connected neighbour = Add("10.0.0.1");
  const Connected stranger = Add("10.0.0.2");
  const std::array<char, 1000> unread = {};
  ASSERT_EQ(send(hasty.far, unread.data(), unread.size(), MSG_NOSIGNAL), 1000);
  EXPECT_GT(CancelTooMany("10.0.0.1", hasty.port), ConnectionTable::kMinCancelledPerSecond);
  EXPECT_FALSE(table_.CountCancelled("10.0.0.1", hasty.port)) << "it is marked";
  EXPECT_TRUE(IsOpen(hasty)) << "only marked";
  EXPECT_EQ(Closed(), (std::vector<std::string>{"10.0.0.1"}));
  EXPECT_FALSE(IsOpen(hasty));
  EXPECT_TRUE(IsOpen(neighbour));
  EXPECT_TRUE(IsOpen(stranger));
  char byte = 0;
  EXPECT_LE(recv(hasty.far, &byte, 1, 0), 0) << "its caller hears of it";
  EXPECT_FALSE(table_.CountCancelled("10.0.0.1", hasty.port));
  EXPECT_TRUE(table_.CloseMarked().empty()) << "it is closed once";
}

TEST_F(CancelledCallsTest, CallsThatEndWithTheirConnectionAreNotCounted) {
  const Connected hasty = Add("127.0.0.1");
  const Connected neighbour = Add("127.0.0.1");
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(table_.CountCancelled("127.0.0.1", neighbour.port));
  CancelTooMany("127.0.0.1", hasty.port);
  EXPECT_LT(CancelTooMany("127.0.0.1", neighbour.port), 200u) << "its address is above its rate";
  const Connected again = Add("127.0.0.1");
  EXPECT_EQ(table_.CloseMarked().size(), 2u);
  EXPECT_FALSE(table_.CountCancelled("127.0.0.1", neighbour.port));
  EXPECT_TRUE(IsOpen(again));
}

// Where a port is a new connection's, what the old one did is not its own.
TEST_F(CancelledCallsTest, AConnectionOfTheSamePortBeginsAnew) {
  const Connected hasty = Add("127.0.0.1");
  CancelTooMany("127.0.0.1", hasty.port);
  table_.CloseMarked();
  const Connected again = Connect();
  ASSERT_TRUE(table_.Add(again.near, "127.0.0.1", hasty.port).ok());
  EXPECT_FALSE(table_.CountCancelled("127.0.0.1", hasty.port));
  EXPECT_LT(CancelTooMany("127.0.0.1", hasty.port), ConnectionTable::kMinCancelledPerSecond) << "above its part";
  EXPECT_EQ(table_.CloseMarked().size(), 1u);
}

TEST_F(CancelledCallsTest, AConnectionThatCancelsFewStaysBesideOneThatCancelsMany) {
  const Connected hasty = Add("10.0.0.1");
  const Connected neighbour = Add("10.0.0.1");
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(table_.CountCancelled("10.0.0.1", neighbour.port));
  CancelTooMany("10.0.0.1", hasty.port);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(table_.CountCancelled("10.0.0.1", neighbour.port));
  EXPECT_EQ(table_.CloseMarked().size(), 1u);
  EXPECT_FALSE(IsOpen(hasty));
  EXPECT_TRUE(IsOpen(neighbour));
}

TEST_F(CancelledCallsTest, ManyConnectionsTogetherCancelNoMoreThanAFew) {
  std::vector<Connected> all;
  for (int i = 0; i < 40; ++i) all.push_back(Add("10.0.0.1"));
  uint64_t num_cancelled = 0;
  size_t num_marked = 0;
  for (int round = 0; round < 100; ++round) {
    for (const Connected& one : all) {
      num_marked += table_.CountCancelled("10.0.0.1", one.port) ? 1 : 0;
      ++num_cancelled;
    }
  }
  EXPECT_EQ(num_marked, all.size()) << "of " << num_cancelled << " calls each cancelled a 40th";
}

TEST_F(CancelledCallsTest, AnAddressMayCancelAsManyAsItIsGiven) {
  ConnectionTable table({.connections = 10, .connections_per_address = 10, .cancelled_per_second = 5'000});
  const Connected one = Connect();
  ASSERT_TRUE(table.Add(one.near, "10.0.0.1", one.port).ok());
  for (int i = 0; i < 5'000; ++i) ASSERT_FALSE(table.CountCancelled("10.0.0.1", one.port)) << i;
  EXPECT_TRUE(table.Add(Connect().near, "10.0.0.1", 1).ok());
}

TEST_F(CancelledCallsTest, WhoCancelsTooManyIsShutOut) {
  const Connected hasty = Add("10.0.0.1");
  CancelTooMany("10.0.0.1", hasty.port);
  const Connected again = Connect();
  const absl::Status refused = table_.Add(again.near, "10.0.0.1", again.port);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("shut out for 5 s"), std::string::npos) << refused;
  EXPECT_TRUE(table_.Add(again.near, "10.0.0.2", again.port).ok());
}

TEST_F(CancelledCallsTest, ProgramsOfThisHostAreNotShutOutTogether) {
  for (const std::string host : {"127.0.0.1", "::/64"}) {
    const Connected hasty = Add(host);
    CancelTooMany(host, hasty.port);
    EXPECT_EQ(Closed(), (std::vector<std::string>{host}));
    EXPECT_FALSE(IsOpen(hasty));
    Add(host);
  }
}

TEST_F(CancelledCallsTest, AnotherSocketOfTheSameNumberIsNotClosed) {
  const Connected gone = Add("10.0.0.1");
  CancelTooMany("10.0.0.1", gone.port);
  const Connected other = Connect();
  ASSERT_EQ(dup2(other.near, gone.near), gone.near);
  EXPECT_TRUE(table_.CloseMarked().empty());
  EXPECT_TRUE(IsOpen(other));
}

TEST_F(CancelledCallsTest, OfWhomThereIsNoConnectionNothingIsKept) {
  EXPECT_EQ(CancelTooMany("10.0.0.1", 1), 10 * ConnectionTable::kMinCancelledPerSecond);
}

class RefusedCallsTest : public TcpConnections {
 protected:
  static constexpr uint64_t kFreely = ConnectionTable::kMaxRefused / 4;  // Where nobody else has any.
  static constexpr uint64_t kPart = kFreely / ConnectionTable::kMinParts;

  // Returns whether connections are to be looked at.
  bool Refuse(const std::string& caller, uint16_t port, uint64_t count) {
    bool is_too_many = false;
    for (uint64_t i = 0; i < count; ++i) is_too_many = table_.CountRefused(caller, port) || is_too_many;
    return is_too_many;
  }
  void End(const std::string& caller, uint16_t port, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) table_.CountRefusalDone(caller, port);
  }
  // The far end does not read, and the near end's buffer is full.
  static void Fill(const Connected& both) {
    const std::array<char, 10'000> bytes = {};
    while (send(both.near, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  // Whose connections are closed once they were full for long enough.
  std::vector<std::string> ClosedForRefusals() {
    EXPECT_TRUE(table_.CloseMarked().empty()) << "they may become free";
    std::this_thread::sleep_for(ConnectionTable::kFull);  // For the clock.
    std::vector<std::string> addresses;
    for (const ConnectionTable::Ended& one : table_.CloseMarked()) {
      addresses.push_back(one.address);
      EXPECT_EQ(one.cause, ConnectionTable::Cause::kRefused);
    }
    return addresses;
  }
};

TEST_F(RefusedCallsTest, WhoDoesNotReadThemIsClosed) {
  const Connected silent = Add("10.0.0.1");
  const Connected reader = Add("10.0.0.1");
  const Connected slow = Add("10.0.0.1");
  const Connected stranger = Add("10.0.0.2");
  for (const Connected& one : {silent, slow, stranger}) Fill(one);
  EXPECT_FALSE(Refuse("10.0.0.1", slow.port, kPart / 2));
  EXPECT_FALSE(Refuse("10.0.0.1", reader.port, 500));
  EXPECT_FALSE(Refuse("10.0.0.2", stranger.port, 500));
  EXPECT_FALSE(table_.IsWatching());
  EXPECT_TRUE(Refuse("10.0.0.1", silent.port, kFreely));
  EXPECT_TRUE(table_.IsWatching());
  EXPECT_FALSE(Refuse("10.0.0.1", silent.port, 10)) << "they are looked at already";
  EXPECT_EQ(ClosedForRefusals(), (std::vector<std::string>{"10.0.0.1"}));
  EXPECT_FALSE(IsOpen(silent));
  EXPECT_TRUE(IsOpen(reader)) << "its socket takes more";
  EXPECT_TRUE(IsOpen(slow)) << "it has its part and no more";
  EXPECT_TRUE(IsOpen(stranger));
  End("10.0.0.1", silent.port, kFreely + 10);
  EXPECT_TRUE(table_.CloseMarked().empty());
  EXPECT_FALSE(table_.IsWatching());
}

TEST_F(RefusedCallsTest, WhoHasAThousandAtOnceMayBeSlow) {
  const Connected slow = Add("10.0.0.1");
  Fill(slow);
  EXPECT_FALSE(Refuse("10.0.0.1", slow.port, 1024));
  EXPECT_TRUE(ClosedForRefusals().empty());
}

TEST_F(RefusedCallsTest, WhoReadsAtLastStays) {
  const Connected slow = Add("10.0.0.1");
  Fill(slow);
  EXPECT_TRUE(Refuse("10.0.0.1", slow.port, kFreely + 1));
  EXPECT_TRUE(table_.CloseMarked().empty());
  End("10.0.0.1", slow.port, 1);
  EXPECT_TRUE(ClosedForRefusals().empty());
  EXPECT_TRUE(Refuse("10.0.0.1", slow.port, 1));
  EXPECT_EQ(ClosedForRefusals().size(), 1u) << "it has been full for long enough since then";
}

// Each is one who takes as many as he may get before he is looked at.
TEST_F(RefusedCallsTest, AddressesHaveHalfOfWhatTheOthersLeave) {
  const auto take_all = [&](const std::string& caller) {
    uint64_t count = 0;
    for (; !table_.CountRefused(caller, 1); ++count) {
    }
    table_.CountRefusalDone(caller, 1);
    return count;
  };
  EXPECT_EQ(take_all("10.0.0.1"), kFreely);
  table_.CloseMarked();
  EXPECT_EQ(take_all("10.0.0.2"), kFreely - kFreely / 4);
}

TEST_F(RefusedCallsTest, ManyConnectionsOfAnAddressAreAllLookedAt) {
  std::vector<Connected> all;
  for (int i = 0; i < 40; ++i) all.push_back(Add("10.0.0.1"));
  for (const Connected& one : all) {
    Fill(one);
    Refuse("10.0.0.1", one.port, kPart);
  }
  EXPECT_EQ(ClosedForRefusals().size(), all.size());
}

TEST_F(RefusedCallsTest, ConnectionsOfAUnixSocketAreAsOne) {
  const Connected silent = Connect();
  const Connected reader = Connect();
  const Connected stranger = Connect();
  ASSERT_TRUE(table_.Add(silent.near, "uid:1", 0).ok());
  ASSERT_TRUE(table_.Add(reader.near, "uid:1", 0).ok());
  ASSERT_TRUE(table_.Add(stranger.near, "uid:2", 0).ok());
  Fill(silent);
  Fill(stranger);
  EXPECT_TRUE(Refuse("uid:1", 0, kFreely + 1));
  EXPECT_EQ(ClosedForRefusals(), (std::vector<std::string>{"uid:1"}));
  EXPECT_FALSE(IsOpen(silent));
}

TEST_F(RefusedCallsTest, CallsThatEndWithTheirConnectionAreNotCountedAsCancelled) {
  const Connected silent = Add("10.0.0.1");
  Fill(silent);
  Refuse("10.0.0.1", silent.port, kFreely + 1);
  EXPECT_EQ(ClosedForRefusals().size(), 1u);
  for (uint64_t i = 0; i <= kFreely; ++i) EXPECT_FALSE(table_.CountCancelled("10.0.0.1", silent.port));
  Add("10.0.0.1");
}

}  // namespace
}  // namespace prefixd
