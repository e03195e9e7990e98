// Networks by address and number of bits, and the addresses in them.
// Threads: any; nothing here changes.
#ifndef PREFIXD_SERVER_RPC_NETWORK_H_
#define PREFIXD_SERVER_RPC_NETWORK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prefixd {

class Network {
 public:
  // "10.0.0.0/8", "2001:db8::1", which is one address, or "unix", which is all Unix sockets. Nothing if it is no such.
  static std::optional<Network> Parse(const std::string& text);

  // Whether a peer, as gRPC writes it, is in it: "ipv4:10.0.0.1:4242", "ipv6:%5B::1%5D:4242" or "unix:".
  bool Has(std::string_view peer) const;

 private:
  using Address = std::array<uint8_t, 16>;  // An IPv4 address is the IPv6 address ::ffff:a.b.c.d.
  static std::optional<Address> ParseAddress(const std::string& text);

  bool is_unix_ = false;
  Address address_ = {};
  int bits_ = 0;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_NETWORK_H_
