#include "server/rpc/caller.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "grpcpp/security/auth_context.h"
#include "server/rpc/network.h"

namespace prefixd {
namespace {

constexpr std::string_view kUser = "uid:";

std::string NameOf(const IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  in6_addr host;
  std::memcpy(&host, address.data(), sizeof(host));
  if (IN6_IS_ADDR_V4MAPPED(&host)) {
    inet_ntop(AF_INET, &host.s6_addr[12], text.data(), text.size());
    return text.data();
  }
  std::memset(&host.s6_addr[8], 0, 8);
  inet_ntop(AF_INET6, &host, text.data(), text.size());
  return StrCat(text.data(), "/64");
}

}  // namespace

std::string AddressName(const sockaddr_storage& address) {
  const std::optional<IpAddress> ip = AddressOf(address);
  return ip ? NameOf(*ip) : "";
}

std::string AddressName(std::string_view peer) {
  const std::optional<IpAddress> address = AddressOfPeer(peer);
  return address ? NameOf(*address) : "";
}

std::string UserName(uid_t user) { return StrCat(kUser, user); }

bool IsUserName(std::string_view caller) { return caller.starts_with(kUser); }

Caller CallerOf(const grpc::ServerContextBase& call, const std::string& user) {
  Caller caller = {.name = user.empty() ? kUnixCaller : user, .connection = call.peer()};
  if (const std::optional<IpAddress> address = AddressOfPeer(caller.connection)) {
    caller.name = NameOf(*address);
    return caller;
  }
  const std::shared_ptr<const grpc::AuthContext> known = call.auth_context();
  if (known != nullptr && known->begin() != known->end()) {
    const auto place = reinterpret_cast<uintptr_t>((*known->begin()).second.data());
    caller.connection = StrCat("unix:", absl::Hex(place));
  }
  return caller;
}

}  // namespace prefixd
