// A client's servers: a channel to each of its addresses, and which of them a call asks first. Private to the library.
//
// Each address has a channel of its own, so that schemes mix and a call can say where it goes. A call asks the servers
// one after another until one takes it (attempts.h).
//
// Owns:    the channels, which connect when they are used.
// Threads: every method from any thread.
#ifndef PREFIXD_CLIENT_CONNECTION_H_
#define PREFIXD_CLIENT_CONNECTION_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/options.h"

namespace prefixd::client {

// How a server is reached.
struct Route {
  std::string address;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string authorization;  // The header of that name that calls send; empty: none.
};

// Where one attempt of a call goes.
class Server {
 public:
  explicit Server(Route route, std::shared_ptr<grpc::Channel> channel);

  const Route& route() const { return route_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const std::string& authorization() const { return route_.authorization; }
  // How often a call asks here before it goes elsewhere: more than once where a name stands for several hosts, of which
  // gRPC takes the next each time.
  size_t tries() const { return tries_; }

  // Has later calls ask here last, for so long.
  void Shun(absl::Duration duration) const;
  // How unlikely the server is to take a call at once, from 0 on.
  int Rank() const;

 private:
  const Route route_;
  const std::shared_ptr<grpc::Channel> channel_;
  const size_t tries_;
  mutable std::atomic<int64_t> shunned_until_ns_ = 0;  // Unix time.
};

class Connection {
 public:
  Connection(absl::Span<const std::string> addresses, const ClientOptions& options);

  // Why no call can be made: then there are no servers. OK: there are.
  const absl::Status& status() const { return status_; }
  const ClientOptions& options() const { return options_; }

  // The servers in the order in which a call that begins now asks them, each as often as it may. They take turns; those
  // that are not connected, or refused a call a moment ago, come last.
  std::vector<const Server*> Order() const;

  const std::deque<Server>& servers() const { return servers_; }

  // One of the servers alone, over the channel that there is: for calls that can go nowhere else, since what they need
  // lives there. All who ask for one server share what they get, and may keep it longer than this.
  std::shared_ptr<const Connection> To(const Server& server) const;

  // So many connections to the first server. The first is that of all other calls. The others are made when they are
  // first asked for, and stay: what one TCP stream carries is less than what a network does.
  std::vector<const Server*> Lines(size_t count) const;

  // Lets gRPC work for so long. It does so only while somebody waits for something.
  void Work(absl::Duration duration) const;

 private:
  Connection(const Server& server, const ClientOptions& options);

  const ClientOptions options_;
  absl::Status status_;
  std::deque<Server> servers_;
  mutable std::atomic<size_t> turn_;
  mutable std::mutex mutex_;
  mutable std::map<const Server*, std::shared_ptr<const Connection>> to_;  // Guarded by mutex_, as what follows.
  mutable std::deque<Server> lines_;                                       // Beside the first server's own.
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CONNECTION_H_
