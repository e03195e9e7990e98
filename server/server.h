// The whole server: device, lanes, budgets, services and listening sockets, from start to drained.
//
//   auto server = *Server::Start(options, *OpenDevice(options.device, options.cpu_isa), on_failed);
//   ... until SIGTERM ...
//   server->Drain({.timeout = absl::Seconds(30)}, [] { return false; });
//
// Threads: Start, Drain and the destructor by one thread; on_failed is called on a lane thread, one of gRPC's or the
//          one that accepts connections, and must not block.
#ifndef PREFIXD_SERVER_SERVER_H_
#define PREFIXD_SERVER_SERVER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server.h"
#include "kernels/device.h"
#include "server/arrays/array_store.h"
#include "server/call/admission.h"
#include "server/call/benchmark.h"
#include "server/call/server_context.h"
#include "server/call/watchdog.h"
#include "server/lanes/batcher.h"
#include "server/lanes/lane_pool.h"
#include "server/metrics/endpoint.h"
#include "server/metrics/metrics.h"
#include "server/options.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/grpc_servers.h"
#include "server/rpc/health_service.h"
#include "server/rpc/identities.h"
#include "server/rpc/methods.h"
#include "server/rpc/queue_threads.h"
#include "server/rpc/tls_credentials.h"

namespace prefixd {

class Server {
 public:
  // Why a server can't go on.
  enum class Failure : uint8_t {
    kDeviceLost,    // It refuses every request with UNAVAILABLE and reports NOT_SERVING.
    kCannotAccept,  // It serves the connections that it has.
  };

  // Listens and serves once it returns. `on_failed` is called once at most for each failure.
  // Errors: those of the device; UNAVAILABLE if an address can't be bound; FAILED_PRECONDITION if the limit of open
  // files is too low, or a file of TLS, of tokens or of limits can't be used; INTERNAL if the port file can't be
  // written.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options, std::unique_ptr<Device> device,
                                                       std::function<void(Failure)> on_failed);

  // Cancels the requests in flight, and waits for them. It never returns if a device hangs. So Serve ends the process
  // without destroying its server.
  ~Server();

  // The ports of the TCP addresses, in the order of --listen, then --admin-listen.
  const std::vector<int>& ports() const { return ports_; }

  // Reads the files of TLS again, and if that was asked for, the tokens and the callers' limits. Those that are wrong
  // change nothing; what happens is logged, and if it was asked for, also what was logged before. Called once a second,
  // so that files of TLS that change are noticed.
  void Reload(bool is_asked_for);

  struct DrainTimes {
    absl::Duration delay;    // Everything is still served, so that balancers see NOT_SERVING before anybody is refused.
    absl::Duration timeout;  // For what is in flight then.
  };

  // Reports NOT_SERVING and goes on serving for the delay; then takes no connections any more and tells callers to go
  // elsewhere (GOAWAY), and waits for what is in flight: until nothing is left, the timeout has passed or `hurry`
  // returns true (it is asked about 50 times a second, and ends the delay too). Then closes the sockets, for a second
  // at most, even if the device hangs. Where a proxy is trusted, GOAWAY waits for what is in flight, for half of the
  // timeout at most. Returns the number of requests that it cut off. Called once at most.
  uint64_t Drain(DrainTimes times, const std::function<bool()>& hurry);

 private:
  Server() = default;
  // Reads --caller-limits, and gives Admission what it says, with what the tokens' file says. Errors: what is wrong
  // with the file; then its limits stay.
  absl::Status TakeCallerLimits();
  absl::Status Listen(const Options& options);
  ServerState State();
  // Serves what `add` adds, and health, on these addresses.
  absl::Status Serve(const Options& options, const std::vector<std::string>& addresses,
                     const std::function<void(ServerContext*, Methods*)>& add,
                     std::shared_ptr<grpc::ResourceQuota> quota);
  std::vector<std::shared_ptr<grpc::Server>> AllServers() const;
  void OnDeviceLost(const absl::Status& status);

  // In the order of dependence: each member uses those above it.
  std::unique_ptr<Metrics> metrics_;  // Null if nobody asked for them.
  std::unique_ptr<Device> device_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<Admission> questions_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Batcher> batcher_;  // Before the lanes, whose last tasks use it.
  std::unique_ptr<LanePool> lanes_;
  std::unique_ptr<ArrayStore> arrays_;  // Their memory is the lanes'. Null: none are held.
  BenchmarkControl benchmarks_;
  ServerContext context_;
  std::function<void(Failure)> on_failed_;
  std::atomic<bool> device_lost_{false};
  std::unique_ptr<Identities> identities_;
  bool has_proxy_ = false;          // Some callers come through a proxy that is trusted.
  std::string caller_limits_file_;  // Empty: there is none.
  uint64_t min_caller_bytes_ = 0;
  CallerLimitsTable caller_limits_;  // What it said.
  HealthService health_;
  std::unique_ptr<TlsCredentials> tls_;             // Null: TCP addresses are served without TLS.
  absl::Status tls_status_;                         // What was wrong when its files were last read.
  std::optional<QueueThreads> queue_threads_;       // Those of all gRPC servers.
  std::vector<std::unique_ptr<GrpcServers>> grpc_;  // For --listen, and for --admin-listen if there is one.
  std::optional<Acceptor> acceptor_;                // Hands connections to them.
  std::shared_ptr<absl::Notification> closed_;      // Drain's: when they have shut down.
  std::vector<int> ports_;
  std::string port_file_;
  std::unique_ptr<MetricsEndpoint> metrics_endpoint_;  // The last: it asks all others for their state.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_SERVER_H_
