// Listens, accepts connections and hands them to gRPC. gRPC's own listener in 1.51 accepts nothing any more once it has
// run out of descriptors, and bounds nothing; here connections are bounded in all and from each address, and whoever
// comes above a bound is closed at once. Who cancels calls faster than is good for the others is closed too: streams
// that are reset as soon as they are there cost their sender nothing, and gRPC the work of a call. And so is who sends
// what belongs to no call (traffic.h).
//
//   Acceptor acceptor(limits);
//   Acceptor::Door* door = acceptor.AddTo(&builder, grpc::InsecureServerCredentials());
//   PREFIXD_ASSIGN_OR_RETURN(int port, acceptor.Listen("127.0.0.1:0", access, [=](const auto&) { return door; }));
//   ... builder.BuildAndStart() ...
//   acceptor.Start(on_failed);
//
// Threads: one accepts, from Start to Stop. The methods are called by one thread, but AddTo after Start by the one that
//          accepts, and the Count... and counts by any.
#ifndef PREFIXD_SERVER_RPC_ACCEPTOR_H_
#define PREFIXD_SERVER_RPC_ACCEPTOR_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/connection_table.h"

namespace prefixd {

class Acceptor {
 public:
  explicit Acceptor(ConnectionTable::Limits limits);
  ~Acceptor();

  // Who may connect to a Unix socket: those who may write to its file.
  struct SocketAccess {
    mode_t mode = 0600;
    std::optional<gid_t> group;
  };

  // Where connections enter a server, with the credentials of all that enter there.
  using Door = grpc::experimental::ExternalConnectionAcceptor;

  // The door of whom a connection is from: "10.0.0.1", "uid:1000", "unix" where the user can't be told. Called by the
  // thread that accepts.
  using DoorOf = std::function<Door*(const std::string& caller)>;

  // Before the server is built. The door lives as long as the Acceptor.
  Door* AddTo(grpc::ServerBuilder* builder, const std::shared_ptr<grpc::ServerCredentials>& credentials);

  // Binds HOST:PORT, to all addresses that the host has, or unix:PATH, whose connections go to these doors. Returns the
  // port, 0 of a Unix socket. Errors: UNAVAILABLE if another server has the address or it can't be bound.
  absl::StatusOr<int> Listen(const std::string& address, const SocketAccess& access, DoorOf door_of);

  // Once the servers are built and started. on_failed is called, once at most and by the thread that accepts, if it
  // can't go on.
  void Start(std::function<void(const absl::Status&)> on_failed);

  // The caller at this peer, as gRPC writes it, has cancelled a call. Of Unix sockets' peers, who can't be told apart,
  // nothing follows; others may lose their connection, as ConnectionTable says.
  void CountCancelled(const std::string& peer);

  // A call of this caller's connection is refused that nobody is charged for, as ConnectionTable says; it is done.
  // `port`: the peer's; 0: it has none.
  void CountRefused(const std::string& caller, uint16_t port);
  void CountRefusalDone(const std::string& caller, uint16_t port);

  // What the calls of this peer, as gRPC writes it, are counted in. Null of Unix sockets' peers.
  std::shared_ptr<Traffic> TrafficOf(const std::string& peer);

  // Connections now, and since the start.
  struct Counts {
    uint64_t open = 0;
    uint64_t limit = 0;
    uint64_t accepted = 0;
    uint64_t refused = 0;
    uint64_t ended = 0;  // For calls that were cancelled, or refused and not read, or for what belongs to no call.
  };
  Counts counts();

  // Closes the listening sockets and removes their files. Before the servers are shut down. May be called again.
  void Stop();

 private:
  struct Listener {
    int fd;
    DoorOf door_of;
    std::string path;  // A Unix socket's,
    uint64_t inode;    // and its file's: while it is another one, it is another server's.
  };

  absl::Status ListenUnix(const std::string& path, const SocketAccess& access, DoorOf door_of);
  void Run(const std::function<void(const absl::Status&)>& on_failed);
  // Accepts what waits. Errors: those after which nothing more can be accepted.
  absl::Status AcceptFrom(const Listener& listener);
  void HandOver(const Listener& listener, int fd);
  int WaitMs() const;  // Until connections are to be looked at; -1: for ever.
  void CloseMarked();
  void LogEnded(const std::vector<ConnectionTable::Ended>& ended);
  std::string WhyEnded(ConnectionTable::Cause cause) const;  // For the log.

  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<Listener> listeners_;
  const ConnectionTable::Limits limits_;
  ConnectionTable connections_;
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> stopping_{false};
  const int wake_event_;  // The thread is to look whether it stops, and what it is to close.
  std::chrono::steady_clock::time_point next_watch_{};  // At those that do not read refusals.
  std::chrono::steady_clock::time_point next_look_{};   // At what connections bring.
  int spare_ = -1;  // Closed to accept, and refuse, a connection when there are no descriptors left.
  std::thread thread_;
};

// How many descriptors the process may still open, after its limit was raised as far as it goes.
uint64_t NumFreeDescriptors();

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_ACCEPTOR_H_
