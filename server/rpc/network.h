// Addresses, as gRPC writes them, and the networks that they are in.
// Threads: any; nothing here changes.
#ifndef PREFIXD_SERVER_RPC_NETWORK_H_
#define PREFIXD_SERVER_RPC_NETWORK_H_

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prefixd {

// An IPv4 address is the IPv6 address ::ffff:a.b.c.d.
using IpAddress = std::array<uint8_t, 16>;

// Whether a peer, as gRPC writes it, is at the other end of a TCP connection.
bool IsTcpPeer(std::string_view peer);

// The address in a peer, as gRPC writes it: "ipv4:10.0.0.1:4242" or "ipv6:%5B::1%5D:4242". Nothing if there is none in
// it, as in "unix:".
std::optional<IpAddress> AddressOfPeer(std::string_view peer);

// The port in such a peer; 0 if there is none.
uint16_t PortOfPeer(std::string_view peer);

// The same of a socket's peer.
std::optional<IpAddress> AddressOf(const sockaddr_storage& peer);
uint16_t PortOf(const sockaddr_storage& peer);

class Network {
 public:
  // "10.0.0.0/8", "2001:db8::1", which is one address, or "unix", which is all Unix sockets. Nothing if it is no such.
  static std::optional<Network> Parse(const std::string& text);

  // Whether a peer, as gRPC writes it, is in it.
  bool Has(std::string_view peer) const;

 private:
  bool is_unix_ = false;
  IpAddress address_ = {};
  int bits_ = 0;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_NETWORK_H_
