#include "server/tcp_listeners.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace prefixd {
namespace {

absl::Status CantListen(const std::string& address, const char* what) {
  return absl::UnavailableError(StrCat("can't listen on ", address, ": ", what));
}

}  // namespace

absl::StatusOr<TcpListeners> ListenTcp(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return CantListen(address, gai_strerror(error));
  }
  const absl::Cleanup free_found = [&] { freeaddrinfo(found); };
  TcpListeners listeners;
  absl::Status first_error;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    // The first address gets a free port if none is asked for; the others get the same.
    sockaddr_storage bound = {};
    std::memcpy(&bound, info->ai_addr, info->ai_addrlen);
    auto& port_field = bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                   : reinterpret_cast<sockaddr_in&>(bound).sin_port;
    if (listeners.port != 0) port_field = htons(static_cast<uint16_t>(listeners.port));
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1, no = 0;
    if (fd >= 0) {
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      // [::] means every address of the host, as with gRPC.
      if (info->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    }
    socklen_t size = sizeof(bound);
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&bound), info->ai_addrlen) != 0 ||
        listen(fd, kListenBacklog) != 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      first_error.Update(CantListen(address, strerror(errno)));
      if (fd >= 0) close(fd);
      continue;
    }
    listeners.port = ntohs(port_field);
    listeners.descriptors.push_back(fd);
  }
  if (listeners.port == 0) return first_error;
  return listeners;
}

}  // namespace prefixd
