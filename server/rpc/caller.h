// Whose a connection or a call is, from what the network says of it.
//
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_CALLER_H_
#define PREFIXD_SERVER_RPC_CALLER_H_

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "grpcpp/server_context.h"
#include "server/call/caller.h"

namespace prefixd {

// Whose an address is: "10.0.0.1", or for IPv6 the network of 64 bits, of which one host has all: "2001:db8::/64".
// Empty for other families.
std::string AddressName(const sockaddr_storage& address);

// The same of a peer as gRPC writes it, "ipv4:10.0.0.1:4242" or "ipv6:%5B::1%5D:4242"; "unix" for a Unix socket.
std::string PeerName(std::string_view peer);

// gRPC says nothing of a Unix socket's peer: its connections are told apart by the memory in which gRPC keeps what it
// knows of each, and which is no other connection's as long as a call of this one is there.
Caller CallerOf(const grpc::CallbackServerContext& call);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CALLER_H_
