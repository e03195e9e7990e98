#include "server/rpc/caller.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "grpcpp/security/auth_context.h"

namespace prefixd {
namespace {

constexpr std::string_view kIpv4 = "ipv4:";
constexpr std::string_view kIpv6 = "ipv6:";

}  // namespace

std::string AddressName(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(), text.size());
    return text.data();
  }
  if (address.ss_family != AF_INET6) return "";
  in6_addr host = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&host)) {
    inet_ntop(AF_INET, &host.s6_addr[12], text.data(), text.size());
    return text.data();
  }
  std::memset(&host.s6_addr[8], 0, 8);
  inet_ntop(AF_INET6, &host, text.data(), text.size());
  return StrCat(text.data(), "/64");
}

std::string PeerName(std::string_view peer) {
  sockaddr_storage address = {};
  const std::string_view with_port = peer.substr(std::min(peer.size(), kIpv4.size()));
  std::string host(with_port.substr(0, with_port.rfind(':')));
  if (peer.starts_with(kIpv4)) {
    address.ss_family = AF_INET;
    inet_pton(AF_INET, host.c_str(), &reinterpret_cast<sockaddr_in&>(address).sin_addr);
  } else if (peer.starts_with(kIpv6)) {
    host = absl::StrReplaceAll(host, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
    host.resize(std::min(host.size(), host.find('%')));  // A zone.
    address.ss_family = AF_INET6;
    inet_pton(AF_INET6, host.c_str(), &reinterpret_cast<sockaddr_in6&>(address).sin6_addr);
  } else {
    return "unix";
  }
  return AddressName(address);
}

Caller CallerOf(const grpc::CallbackServerContext& call) {
  Caller caller = {.name = "", .connection = call.peer()};
  caller.name = PeerName(caller.connection);
  if (caller.name != "unix") return caller;
  const std::shared_ptr<const grpc::AuthContext> known = call.auth_context();
  if (known != nullptr && known->begin() != known->end()) {
    const auto place = reinterpret_cast<uintptr_t>((*known->begin()).second.data());
    caller.connection = StrCat("unix:", absl::Hex(place));
  }
  return caller;
}

}  // namespace prefixd
