// A relay between a client and a server. A test can hold up the client's bytes, as if the server had stopped.
#ifndef PREFIXD_TESTS_CLIENT_RELAY_H_
#define PREFIXD_TESTS_CLIENT_RELAY_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace prefixd::client {

// Relays one connection.
class Relay {
 public:
  explicit Relay(int server_port) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int small = 4096;  // A small buffer is soon full, so the client soon notices the hold.
    setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    forward_ = std::thread([this, server_port] {
      client_ = accept(listener_, nullptr, nullptr);
      server_ = socket(AF_INET, SOCK_STREAM, 0);
      const sockaddr_in to = Loopback(server_port);
      EXPECT_EQ(connect(server_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
      std::thread back([this] { Copy(server_, client_, nullptr); });
      Copy(client_, server_, &held_);
      back.join();
    });
  }
  ~Relay() {
    Break();
    forward_.join();
    close(listener_);
    close(client_);
    close(server_);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Holds up the client's bytes. The server's replies still go through.
  void Hold() { held_ = true; }
  void Release() { held_ = false; }
  // Ends the connection.
  void Break() {
    for (const int socket : {listener_, client_.load(), server_.load()}) shutdown(socket, SHUT_RDWR);
    held_ = false;
  }

 private:
  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  static void Copy(int from, int to, const std::atomic<bool>* held) {
    std::vector<char> bytes(16384);
    for (;;) {
      while (held != nullptr && *held) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
      const ssize_t count = read(from, bytes.data(), bytes.size());
      if (count <= 0) break;
      for (ssize_t sent = 0; sent < count;) {
        const ssize_t now = send(to, bytes.data() + sent, count - sent, MSG_NOSIGNAL);
        if (now <= 0) return;
        sent += now;
      }
    }
    shutdown(to, SHUT_WR);
  }

  const int listener_;
  int port_ = 0;
  std::atomic<int> client_ = -1;
  std::atomic<int> server_ = -1;
  std::atomic<bool> held_ = false;
  std::thread forward_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_RELAY_H_
