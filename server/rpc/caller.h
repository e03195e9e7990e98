// Whose a connection or a call is, from what the network says of it.
//
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_CALLER_H_
#define PREFIXD_SERVER_RPC_CALLER_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "grpcpp/server_context.h"
#include "server/call/caller.h"

namespace prefixd {

// Whose an address is: "10.0.0.1", or for IPv6 the network of 64 bits, of which one host has all: "2001:db8::/64".
// Empty for other families.
std::string AddressName(const sockaddr_storage& address);

// Whose the address in a peer is, as gRPC writes it. Empty if there is none in it, as in "unix:".
std::string AddressName(std::string_view peer);

// A user on a Unix socket: "uid:1000".
std::string UserName(uid_t user);
bool IsUserName(std::string_view caller);

// Somebody on a Unix socket.
inline constexpr char kUnixCaller[] = "unix";

// `user`: whose all connections of the call's gRPC server are; empty: anybody's. gRPC says nothing of a Unix socket's
// peer: its connections are told apart by the memory in which gRPC keeps what it knows of each, and which is no other
// connection's as long as a call of this one is there.
Caller CallerOf(const grpc::ServerContextBase& call, const std::string& user);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CALLER_H_
