#include "server/rpc/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "absl/strings/str_replace.h"

namespace prefixd {
namespace {

constexpr std::string_view kUnix = "unix";
constexpr std::string_view kIpv4 = "ipv4:";
constexpr std::string_view kIpv6 = "ipv6:";
constexpr size_t kIpv4Begin = 12;  // Where an IPv4 address is in an IPv6 one.
constexpr IpAddress kMappedIpv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::optional<IpAddress> ParseAddress(const std::string& text) {
  IpAddress address = {};
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  address = kMappedIpv4;
  if (inet_pton(AF_INET, text.c_str(), address.data() + kIpv4Begin) == 1) return address;
  return std::nullopt;
}

}  // namespace

bool IsTcpPeer(std::string_view peer) { return peer.starts_with(kIpv4) || peer.starts_with(kIpv6); }

std::optional<IpAddress> AddressOfPeer(std::string_view peer) {
  if (!IsTcpPeer(peer)) return std::nullopt;
  peer.remove_prefix(kIpv4.size());
  std::string host = absl::StrReplaceAll(std::string(peer.substr(0, peer.rfind(':'))),
                                         {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  host.resize(std::min(host.size(), host.find('%')));  // A zone.
  return ParseAddress(host);
}

uint16_t PortOfPeer(std::string_view peer) {
  uint16_t port = 0;
  if (IsTcpPeer(peer)) std::from_chars(peer.data() + peer.rfind(':') + 1, peer.data() + peer.size(), port);
  return port;
}

std::optional<IpAddress> AddressOf(const sockaddr_storage& peer) {
  IpAddress address = kMappedIpv4;
  if (peer.ss_family == AF_INET) {
    std::memcpy(&address[kIpv4Begin], &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, sizeof(in_addr));
  } else if (peer.ss_family == AF_INET6) {
    std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, address.size());
  } else {
    return std::nullopt;
  }
  return address;
}

uint16_t PortOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
  return 0;
}

std::optional<Network> Network::Parse(const std::string& text) {
  Network network;
  if (text == kUnix) {
    network.is_unix_ = true;
    return network;
  }
  const size_t slash = text.find('/');
  const std::string host = text.substr(0, slash);
  const std::optional<IpAddress> address = ParseAddress(host);
  if (!address) return std::nullopt;
  network.address_ = *address;
  network.bits_ = 128;
  if (slash == std::string::npos) return network;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data() + slash + 1, end, network.bits_);
  if (error != std::errc() || parsed != end || network.bits_ < 0 || network.bits_ > (is_ipv6 ? 128 : 32)) {
    return std::nullopt;
  }
  if (!is_ipv6) network.bits_ += 8 * static_cast<int>(kIpv4Begin);
  return network;
}

bool Network::Has(std::string_view peer) const {
  if (is_unix_) return peer.starts_with(kUnix);
  const std::optional<IpAddress> address = AddressOfPeer(peer);
  if (!address) return false;
  for (int bit = 0; bit < bits_; ++bit) {
    const size_t byte = static_cast<size_t>(bit) / 8;
    const int mask = 0x80 >> (bit % 8);
    if (((*address)[byte] & mask) != (address_[byte] & mask)) return false;
  }
  return true;
}

}  // namespace prefixd
