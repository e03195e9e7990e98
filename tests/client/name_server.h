// A server of names that knows one answer. Targets dns://ADDRESS/NAME:PORT ask it.
#ifndef PREFIXD_TESTS_CLIENT_NAME_SERVER_H_
#define PREFIXD_TESTS_CLIENT_NAME_SERVER_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace prefixd::client {

// Any name stands for all of `hosts`, which are IPv4 addresses.
class NameServer {
 public:
  explicit NameServer(std::vector<std::string> hosts)
      : hosts_(std::move(hosts)), socket_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    answer_ = std::thread([this] { Answer(); });
  }
  ~NameServer() {
    shutdown(socket_, SHUT_RDWR);
    answer_.join();
    close(socket_);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void Answer() {
    constexpr size_t kHeaderBytes = 12;
    for (;;) {
      std::string message(512, '\0');
      sockaddr_in from;
      socklen_t size = sizeof(from);
      const ssize_t length =
          recvfrom(socket_, message.data(), message.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (length <= 0) return;
      if (length < static_cast<ssize_t>(kHeaderBytes)) continue;
      const size_t question_end = message.find('\0', kHeaderBytes) + 5;  // The name, its type, its class.
      const bool wants_ipv4 = message[question_end - 3] == 1;
      message.resize(question_end);
      message[2] = '\x81';  // A reply,
      message[3] = '\x80';  // without an error.
      message[7] = static_cast<char>(wants_ipv4 ? hosts_.size() : 0);
      message[9] = message[11] = 0;
      for (const std::string& host : hosts_) {
        if (!wants_ipv4) break;
        message += std::string("\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4", 12);  // The same name, IPv4, for 60 s, four bytes.
        const in_addr_t ipv4 = inet_addr(host.c_str());
        message.append(reinterpret_cast<const char*>(&ipv4), sizeof(ipv4));
      }
      sendto(socket_, message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
    }
  }

  const std::vector<std::string> hosts_;
  const int socket_;
  int port_ = 0;
  std::thread answer_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_NAME_SERVER_H_
