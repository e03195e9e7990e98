// A host that takes connections and says nothing.
#ifndef PREFIXD_TESTS_CLIENT_SILENT_HOST_H_
#define PREFIXD_TESTS_CLIENT_SILENT_HOST_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace prefixd::client {

class SilentHost {
 public:
  SilentHost() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    EXPECT_EQ(listen(listener_, 8), 0);  // Without a bind, on a port of the kernel's choice.
  }
  ~SilentHost() { close(listener_); }
  SilentHost(const SilentHost&) = delete;
  SilentHost& operator=(const SilentHost&) = delete;

  std::string address() const {
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

 private:
  const int listener_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_TESTS_CLIENT_SILENT_HOST_H_
