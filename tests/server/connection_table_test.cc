#include "server/rpc/connection_table.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

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
    return table_.Add(fd, address).ok();
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

// A descriptor's number soon belongs to something else.
TEST_F(ConnectionTableTest, AnotherSocketOfTheSameNumberIsAnother) {
  EXPECT_TRUE(Add("a"));
  EXPECT_TRUE(Add("a"));
  close(open_[0]);
  open_[0] = OpenSocket();
  EXPECT_TRUE(Add("a"));
}

}  // namespace
}  // namespace prefixd
