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

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/options.h"

namespace prefixd::client {

// Where one attempt of a call goes.
class Server {
 public:
  Server(std::shared_ptr<grpc::Channel> channel, std::string authorization, size_t tries)
      : channel_(std::move(channel)), authorization_(std::move(authorization)), tries_(tries) {}

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // The header of that name that calls send; empty: none.
  const std::string& authorization() const { return authorization_; }
  // How often a call asks here before it goes elsewhere: more than once where a name stands for several hosts, of which
  // gRPC takes the next each time.
  size_t tries() const { return tries_; }

  // Has later calls ask here last, for so long.
  void Shun(absl::Duration duration) const;
  // How unlikely the server is to take a call at once, from 0 on.
  int Rank() const;

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::string authorization_;
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

  // Lets gRPC work for so long. It does so only while somebody waits for something.
  void Work(absl::Duration duration) const;

 private:
  const ClientOptions options_;
  absl::Status status_;
  std::deque<Server> servers_;
  mutable std::atomic<size_t> turn_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CONNECTION_H_
