// The gRPC servers behind the same addresses, which serve the same: one for anybody, and one for each user who connects
// to a Unix socket. gRPC does not say whose a Unix socket's connection is, but the acceptor knows: a server that nobody
// else's connections are given to serves that user alone.
//
//   GrpcServers servers(context, settings, &acceptor);
//   acceptor.Listen(address, access, [&](const std::string& caller) { return servers.DoorOf(caller); });
//   PREFIXD_RETURN_IF_ERROR(servers.Start());
//   acceptor.Start(on_failed);
//   ...
//   acceptor.Stop();
//   for (const auto& server : servers.All()) server->Shutdown(deadline);  // Each on a thread of its own.
//   servers.Stop();
//
// Threads: DoorOf the one that accepts; all else one thread, while nothing is accepted.
// Bounds:  16 users have servers of their own, each with threads of its own, until the end. Whoever comes later is
//          served by anybody's.
// Cost:    a user's first connection waits 0.35 ms for his server, which has 0.4 MiB and two threads (2 cores).
#ifndef PREFIXD_SERVER_RPC_GRPC_SERVERS_H_
#define PREFIXD_SERVER_RPC_GRPC_SERVERS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "server/call/server_context.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/methods.h"
#include "server/rpc/queue_threads.h"

namespace prefixd {

class GrpcServers {
 public:
  struct Settings {
    uint64_t max_message_bytes = 0;
    std::chrono::milliseconds max_connection_age{0};    // 0: connections may be of any age.
    std::shared_ptr<grpc::ResourceQuota> quota;         // All servers' together.
    std::shared_ptr<grpc::ServerCredentials> tcp;       // For TCP connections; null: none, as Unix sockets have.
    std::function<void(ServerContext*, Methods*)> add;  // What is served. The context outlives the methods.
  };

  // The acceptor is used as long as DoorOf may be called, the threads, which may serve others too, until Stop.
  GrpcServers(ServerContext context, Settings settings, Acceptor* acceptor, QueueThreads* threads);
  ~GrpcServers();  // Needs: Stop was called, or nothing was started.

  // Errors: INTERNAL: gRPC can't start.
  absl::Status Start();

  // Where a caller's connections enter. Of a new user: starts his server.
  Acceptor::Door* DoorOf(const std::string& caller);

  std::vector<std::shared_ptr<grpc::Server>> All() const;

  // Waits for the reactors that there are. Needs: all servers' Shutdown has returned.
  void Stop();

 private:
  struct One;

  // `user`: whose all connections are; empty: anybody's.
  absl::StatusOr<std::unique_ptr<One>> Build(const std::string& user);
  // What follows from what callers of that user's server do.
  CallerEvents EventsOf(const std::string& user) const;
  // Where there can be no server of his own, the door is anybody's.
  Acceptor::Door* NewDoorOf(const std::string& user);

  const ServerContext context_;
  const Settings settings_;
  Acceptor* const acceptor_;
  QueueThreads* const threads_;
  std::vector<std::unique_ptr<One>> servers_;                // The first is anybody's.
  absl::flat_hash_map<std::string, Acceptor::Door*> doors_;  // By user.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_GRPC_SERVERS_H_
