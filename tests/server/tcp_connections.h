// A table of connections, and real ones of TCP for it.
#ifndef PREFIXD_TESTS_SERVER_TCP_CONNECTIONS_H_
#define PREFIXD_TESTS_SERVER_TCP_CONNECTIONS_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "server/rpc/connection_table.h"

namespace prefixd {

// Both ends of a TCP connection, and the port of the far one.
struct Connected {
  int near = -1;
  int far = -1;
  uint16_t port = 0;
};

class TcpConnections : public testing::Test {
 protected:
  TcpConnections() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  ~TcpConnections() override {
    for (const int fd : open_) close(fd);
    close(listener_);
  }

  Connected Connect() {
    Connected both = {.near = -1, .far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(connect(both.far, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
    sockaddr_in peer = {};
    socklen_t size = sizeof(peer);
    both.near = accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    both.port = ntohs(peer.sin_port);
    open_.insert(open_.end(), {both.near, both.far});
    return both;
  }
  Connected Add(const std::string& address) {
    const Connected both = Connect();
    EXPECT_TRUE(table_.Add(both.near, address, both.port).ok());
    return both;
  }
  // Closes what is marked. Returns whose it was.
  std::vector<std::string> Closed() {
    std::vector<std::string> addresses;
    for (const ConnectionTable::Ended& one : table_.CloseMarked()) addresses.push_back(one.address);
    return addresses;
  }
  static bool IsOpen(const Connected& both) {
    char byte = 0;
    return recv(both.near, &byte, 1, MSG_PEEK) == 1 || errno == EAGAIN;
  }

  const int listener_;
  sockaddr_in address_ = {};
  std::vector<int> open_;
  ConnectionTable table_{{.connections = 100, .connections_per_address = 100, .unread_bytes_per_call = 20 << 20}};
};

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_TCP_CONNECTIONS_H_
