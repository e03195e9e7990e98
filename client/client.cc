#include "client/client.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <climits>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "client/connection.h"

namespace prefixd::client {
namespace {

std::shared_ptr<grpc::Channel> MakeChannel(std::string_view address, const ClientOptions& options) {
  // gRPC stays up until the process ends. It would shut down with its last channel, and where a write was still under
  // way it waits ten seconds for that (gRPC 1.51, now and then, after a stream that failed).
  [[maybe_unused]] static const bool stays_up = (grpc_init(), true);
  grpc::ChannelArguments arguments;
  const auto milliseconds = [](absl::Duration d) {
    return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(d), 0, INT_MAX));
  };
  // Connect again as often as calls are tried again. gRPC calls the limit on one attempt its minimal back-off.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(options.initial_backoff));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, milliseconds(options.max_backoff));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(options.connect_timeout));
  // A server that is lost, or stopped, ends the call after forty seconds, not never. A call that waits for its reply
  // sends no data, and would be silent after two pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Calls are tried again here, where sources rewind. gRPC's own retries would keep a copy of what was sent, and
  // in 1.51 a call that is cancelled just after a write now and then never ends with them.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A server is reached directly: an http_proxy of the environment, which gRPC would obey even for loopback, is meant
  // for the web.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Otherwise gRPC gives channels to one address, with the same arguments, one connection.
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(std::string(address), grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Client::Client(std::string_view address, const ClientOptions& options)
    : connection_(new Connection{MakeChannel(address, options), options}) {}

Client::~Client() = default;

absl::StatusOr<Timing> Client::RunChunks(const Spec& spec, ChunkSource& source, ResultSink sink,
                                         const CallOptions& call) {
  return std::visit([&](const auto& one) { return internal::RunChunks(*connection_, one, source, sink, call); }, spec);
}

}  // namespace prefixd::client
