#include "server/rpc/grpc_servers.h"

#include <chrono>
#include <system_error>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/server_builder.h"
#include "server/log.h"
#include "server/rpc/call_queues.h"
#include "server/rpc/caller.h"
#include "server/rpc/identities.h"
#include "server/rpc/network.h"

namespace prefixd {
namespace {

constexpr size_t kMaxUsers = 16;
// Streams of one connection at once, as many as one caller has places among the requests by default; what is above it
// waits in the client. gRPC reads all that a connection has sent in one go, and makes a call of each stream: meanwhile
// everybody else waits.
constexpr int kMaxStreamsPerConnection = 512;
// A caller whose host has gone without a word is noticed after the sum of these.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// From gRPC 1.58 on a ping that is not acknowledged in a minute ends the connection. On a slow link the answer may wait
// behind megabytes of a message; whether the caller is there at all, the keepalive tells.
constexpr char kPingTimeoutArg[] = "grpc.http2.ping_timeout_ms";
constexpr int kPingTimeoutMs = 600'000;
// Calls that no queue has taken yet. From 1.60 on gRPC cancels some of everybody's where there are a thousand, as there
// are for a moment when somebody resets streams.
constexpr char kMaxPendingArg[] = "grpc.server.max_pending_requests";
constexpr char kMaxPendingHardArg[] = "grpc.server.max_pending_requests_hard_limit";
constexpr int kMaxPendingCalls = 20'000;
// Callers may ask us as often as we ask them.
constexpr int kMinPingIntervalMs = 10'000;
// A connection that has not said hello by then is closed.
constexpr int kHandshakeTimeoutMs = 20'000;

// What a caller may send of a stream before the server reads it. gRPC 1.51 finds it out, 16 MiB at most. Newer ones
// know no most: with 1.83 callers of the same host sent gigabytes that nobody read.
constexpr int kWindowBytes = 4 << 20;
bool HasUnboundedWindows() { return !grpc::Version().starts_with("1.51."); }

}  // namespace

struct GrpcServers::One {
  One(ServerContext its, QueueThreads* threads) : context(std::move(its)), queues(threads) {}
  ServerContext context;
  Methods methods{&context};
  CallQueues queues;
  Acceptor::Door* tcp = nullptr;
  Acceptor::Door* local = nullptr;
  std::shared_ptr<grpc::Server> grpc;
};

GrpcServers::GrpcServers(ServerContext context, Settings settings, Acceptor* acceptor, QueueThreads* threads)
    : context_(std::move(context)), settings_(std::move(settings)), acceptor_(acceptor), threads_(threads) {}

GrpcServers::~GrpcServers() = default;

absl::Status GrpcServers::Start() {
  PREFIXD_ASSIGN_OR_RETURN(std::unique_ptr<One> anybodys, Build(/*user=*/""));
  servers_.push_back(std::move(anybodys));
  return absl::OkStatus();
}

Acceptor::Door* GrpcServers::DoorOf(const std::string& caller) {
  const One& anybodys = *servers_.front();
  if (caller == kUnixCaller) return anybodys.local;
  if (!IsUserName(caller)) return anybodys.tcp;
  const auto [door, is_new] = doors_.try_emplace(caller, anybodys.local);
  if (is_new) door->second = NewDoorOf(caller);
  return door->second;
}

Acceptor::Door* GrpcServers::NewDoorOf(const std::string& user) {
  const auto share = [&](std::string_view why) {
    LogWarning(StrCat(user, " has no server of his own and is called ", kUnixCaller, ": ", why), "user without server");
    return servers_.front()->local;
  };
  if (servers_.size() > kMaxUsers) return share(StrCat("there are ", kMaxUsers, " others, the most that may be"));
  absl::StatusOr<std::unique_ptr<One>> own = Build(user);
  if (!own.ok()) return share(std::string(own.status().message()));
  servers_.push_back(*std::move(own));
  return servers_.back()->local;
}

absl::StatusOr<std::unique_ptr<GrpcServers::One>> GrpcServers::Build(const std::string& user) {
  auto one = std::make_unique<One>(context_, threads_);
  one->context.user = user;
  settings_.add(&one->context, &one->methods);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(static_cast<int>(settings_.max_message_bytes));
  // A compressed message would be unpacked before anybody asks how large it becomes.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.SetResourceQuota(*settings_.quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  if (settings_.max_connection_age.count() > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, static_cast<int>(settings_.max_connection_age.count()));
  }
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  if (HasUnboundedWindows()) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  }
  builder.AddChannelArgument(kPingTimeoutArg, kPingTimeoutMs);
  builder.AddChannelArgument(kMaxPendingArg, kMaxPendingCalls);
  builder.AddChannelArgument(kMaxPendingHardArg, kMaxPendingCalls);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
  one->queues.AddTo(&builder);
  one->local = acceptor_->AddTo(&builder, grpc::InsecureServerCredentials());
  if (user.empty()) one->tcp = settings_.tcp != nullptr ? acceptor_->AddTo(&builder, settings_.tcp) : one->local;
  one->grpc = builder.BuildAndStart();
  if (one->grpc == nullptr) return absl::InternalError("gRPC can't start; its own lines above say why");
  try {
    one->queues.Start([methods = &one->methods](Rpc* rpc) { return methods->MakeReactor(rpc); }, EventsOf(user));
  } catch (const std::system_error& error) {
    one->grpc->Shutdown(std::chrono::system_clock::now());
    one->queues.Stop();
    return absl::InternalError(StrCat("can't start its threads: ", error.what()));
  }
  return one;
}

CallerEvents GrpcServers::EventsOf(const std::string& user) const {
  const auto is_proxy = [identities = context_.identities](const std::string& peer) {
    return identities != nullptr && identities->IsTrustedProxy(peer);  // Its connections carry calls of many.
  };
  const auto caller_of = [user](const std::string& peer) {
    std::string address = AddressName(peer);
    if (!address.empty()) return address;
    return user.empty() ? std::string(kUnixCaller) : user;
  };
  return {.on_cancelled =
              [=, this](const std::string& peer) {
                if (!is_proxy(peer)) acceptor_->CountCancelled(peer);
              },
          .on_refused =
              [=, this](const std::string& peer) {
                if (!is_proxy(peer)) acceptor_->CountRefused(caller_of(peer), PortOfPeer(peer));
              },
          .on_refusal_done =
              [=, this](const std::string& peer) {
                if (!is_proxy(peer)) acceptor_->CountRefusalDone(caller_of(peer), PortOfPeer(peer));
              },
          .traffic_of =
              [=, this](const std::string& peer) {
                std::shared_ptr<Traffic> traffic = acceptor_->TrafficOf(peer);
                if (traffic != nullptr && is_proxy(peer)) traffic->Trust();
                return traffic;
              }};
}

std::vector<std::shared_ptr<grpc::Server>> GrpcServers::All() const {
  std::vector<std::shared_ptr<grpc::Server>> all;
  all.reserve(servers_.size());
  for (const auto& server : servers_) all.push_back(server->grpc);
  return all;
}

void GrpcServers::Stop() {
  for (const auto& server : servers_) server->queues.Stop();
}

}  // namespace prefixd
