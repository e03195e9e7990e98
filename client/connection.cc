#include "client/connection.h"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <climits>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"
#include "client/credentials.h"

namespace prefixd::client {
namespace {

// A name stands for any number of hosts, and gRPC does not say how many.
constexpr size_t kTriesOfAName = 4;

bool IsNameOfSeveral(std::string_view address) { return address.starts_with("dns:"); }

enum class Subchannels { kShared, kOwn };

std::shared_ptr<grpc::Channel> MakeChannel(const Route& route, const ClientOptions& options, Subchannels subchannels) {
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
  if (subchannels == Subchannels::kOwn) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (IsNameOfSeveral(route.address)) arguments.SetLoadBalancingPolicyName("round_robin");
  return grpc::CreateCustomChannel(route.address, route.credentials, arguments);
}

}  // namespace

Server::Server(Route route, std::shared_ptr<grpc::Channel> channel)
    : route_(std::move(route)),
      channel_(std::move(channel)),
      tries_(IsNameOfSeveral(route_.address) ? kTriesOfAName : 1) {}

void Server::Shun(absl::Duration duration) const { shunned_until_ns_ = absl::ToUnixNanos(absl::Now() + duration); }

int Server::Rank() const {
  switch (channel_->GetState(/*try_to_connect=*/false)) {
    case GRPC_CHANNEL_IDLE:
    case GRPC_CHANNEL_READY:
      return shunned_until_ns_ > absl::GetCurrentTimeNanos() ? 2 : 0;
    case GRPC_CHANNEL_CONNECTING:
      return 1;
    default:
      return 3;
  }
}

// Clients begin anywhere, so that many which make one call each do not all ask the same server.
Connection::Connection(absl::Span<const std::string> addresses, const ClientOptions& options)
    : options_(options), turn_(std::random_device()()) {
  if (addresses.empty()) {
    status_ = Error(absl::StatusCode::kInvalidArgument, "ADDRESS", "addresses",
                    "the client has no address; expected one server's at least");
  }
  const absl::StatusOr<Credentials> credentials = ReadCredentials(addresses, options);
  if (!credentials.ok()) {
    status_ = credentials.status();
    return;
  }
  for (const std::string& address : addresses) {
    const Route route = {address, credentials->Of(address), credentials->authorization};
    servers_.emplace_back(
        route, MakeChannel(route, options, options.own_connection ? Subchannels::kOwn : Subchannels::kShared));
  }
}

Connection::Connection(const Server& server, const ClientOptions& options) : options_(options), turn_(0) {
  servers_.emplace_back(server.route(), server.channel());
}

std::shared_ptr<const Connection> Connection::To(const Server& server) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Connection>& to = to_[&server];
  if (to == nullptr) to.reset(new Connection(server, options_));
  return to;
}

std::vector<const Server*> Connection::Lines(size_t count) const {
  const Server& first = servers_.front();
  std::vector<const Server*> lines = {&first};
  const std::lock_guard lock(mutex_);
  while (lines_.size() + 1 < count) {
    lines_.emplace_back(first.route(), MakeChannel(first.route(), options_, Subchannels::kOwn));
  }
  for (size_t i = 0; i + 1 < count; ++i) lines.push_back(&lines_[i]);
  return lines;
}

std::vector<const Server*> Connection::Order() const {
  std::vector<std::pair<int, const Server*>> ranked;
  const size_t turn = turn_++;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const Server& server = servers_[(turn + i) % servers_.size()];
    ranked.emplace_back(servers_.size() > 1 ? server.Rank() : 0, &server);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Server*> order;
  for (const auto& [rank, server] : ranked) order.insert(order.end(), server->tries(), server);
  return order;
}

void Connection::Work(absl::Duration duration) const {
  std::vector<const Server*> all;
  all.reserve(servers_.size());
  for (const Server& server : servers_) all.push_back(&server);
  {
    const std::lock_guard lock(mutex_);
    for (const Server& line : lines_) all.push_back(&line);
  }
  for (const Server* server : all) {
    grpc::Channel& channel = *server->channel();
    channel.WaitForStateChange(channel.GetState(false),
                               absl::ToChronoTime(absl::Now() + duration / static_cast<int64_t>(all.size())));
  }
}

}  // namespace prefixd::client
