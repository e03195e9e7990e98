// Sockets that listen on a TCP address.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_TCP_LISTENERS_H_
#define PREFIXD_SERVER_TCP_LISTENERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace prefixd {

// How many connections may wait to be accepted; the kernel may allow fewer.
inline constexpr int kListenBacklog = 4096;

struct TcpListeners {
  std::vector<int> descriptors;  // They don't block. The caller closes them.
  int port = 0;                  // The same for all.
};

// Listens on HOST:PORT or [IPV6]:PORT, on all addresses that the host has. Port 0 takes a free one.
// Errors: UNAVAILABLE if none of them can be bound; it says why.
absl::StatusOr<TcpListeners> ListenTcp(const std::string& address);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_TCP_LISTENERS_H_
