#include "server/server.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/process.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "kernels/cpu/isa.h"
#include "server/call/call.h"
#include "server/call/held_bytes.h"
#include "server/log.h"
#include "server/read_file.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/array_service.h"
#include "server/rpc/caller_lines.h"
#include "server/rpc/diagnostics_service.h"
#include "server/rpc/prefix_service.h"
#include "server/rpc/program_service.h"
#include "server/rpc/reflection_service.h"
#include "server/version.h"

namespace prefixd {
namespace {

// gRPC holds messages that have not come whole, which nobody is charged for, beside those that are. When it has that
// much, it slows senders down, and at last ends calls of theirs with RESOURCE_EXHAUSTED.
constexpr uint64_t kTransportBytesPerRequestByte = 2;
// Questions whose messages have not come may hold a quarter of that.
constexpr uint64_t kQuestionPartOfTransport = 4;
// Questions that are answered once have so many places, until their answers are taken, and a caller has a share of
// them. They are not requests: also a server that may have few of those is asked by many.
constexpr uint64_t kMaxQuestions = 1024;
// For what is not ours to finish, such as streams that never sent a message.
constexpr absl::Duration kCloseTimeout = absl::Milliseconds(100);
constexpr absl::Duration kMaxCloseTime = absl::Seconds(1);
constexpr absl::Duration kProxyTakesReplies = absl::Milliseconds(200);  // For a proxy to read the last ones.
// For what is no connection: the device, the log, files that libraries open.
constexpr uint64_t kReservedDescriptors = 64;
constexpr uint64_t kMinConnections = 16;
// How long a lone caller's next call is looked for: as long as many a call takes, and its kernel.
constexpr std::chrono::milliseconds kCallPollTime{2};

// Zero: any. A connection that ends for its age loses no call, and one that ends with the server may: so all of them
// move while everything is still served. A proxy has asked for the server's health, and HAProxy 2.6 may lose last
// replies.
std::chrono::milliseconds MaxConnectionAge(const Options& options) {
  if (options.max_connection_age_seconds) return std::chrono::seconds(*options.max_connection_age_seconds);
  if (!options.trusted_proxies.empty()) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(std::chrono::seconds(options.drain_delay_seconds)) * 3 / 4;
}

bool IsUnix(std::string_view address) { return address.starts_with("unix:"); }

bool IsLoopback(std::string_view address) {
  return IsUnix(address) || address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
}

// Callers who are nobody in particular, and others who listen, are an operator's business to know.
void WarnOfCallers(const std::string& address, const Options& options) {
  const bool has_tls = !options.tls.certificate.empty();
  const bool has_tokens = !options.token_file.empty();
  if (has_tls && (has_tokens || !options.tls.client_ca.empty())) return;
  LogWarning(StrCat("listening on ", address, ", which is not loopback: ",
                    has_tls ? "callers are not authenticated, whoever can connect is served (see --tls-client-ca and "
                              "--token-file)"
                    : has_tokens ? "nothing is encrypted, so no token is taken there"
                                 : "nothing is encrypted and callers are not authenticated, keep it behind a proxy"));
}

// The whole file appears at once, so that whoever waits for it never reads half a number.
absl::Status WritePortFile(const std::string& path, int port) {
  const std::string temporary = StrCat(path, ".tmp");
  std::ofstream file(temporary);
  file << port << "\n";
  file.close();
  if (file.fail() || rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::InternalError(StrCat("can't write the port file ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<CallerLimitsTable> LoadCallerLimits(const std::string& file, uint64_t min_bytes) {
  constexpr std::string_view kFlag = "--caller-limits";
  if (file.empty()) return CallerLimitsTable();
  PREFIXD_ASSIGN_OR_RETURN(const std::string text, ReadFile(kFlag, file));
  absl::StatusOr<CallerLimitsTable> limits = ReadLimitsFile(text, min_bytes);
  if (limits.ok()) return limits;
  return absl::FailedPreconditionError(StrCat(kFlag, " ", file, ": ", std::string(limits.status().message())));
}

// Half of a card's memory; of a host's, of which requests and their callers have some, a quarter.
uint64_t MostArrayBytes(const DeviceInfo& device) {
  return device.memory_bytes / (device.direct_bytes == DeviceInfo::kHostMemory ? 4 : 2);
}

absl::Status Draining() {
  return Error(absl::StatusCode::kUnavailable, "DRAINING", "", "the server is stopping: retry elsewhere");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, std::unique_ptr<Device> device,
                                                      std::function<void(Failure)> on_failed) {
  std::unique_ptr<Server> server(new Server);
  server->device_ = std::move(device);
  if (options.algorithms == "default") server->device_->ServeDefaultsOnly();
  server->on_failed_ = std::move(on_failed);
  server->admission_ = std::make_unique<Admission>(Admission::Limits{.requests = options.max_requests,
                                                                     .bytes = options.max_request_bytes,
                                                                     .bytes_per_request = Call::kBytes,
                                                                     .share_percent = options.caller_share_percent});
  const uint64_t transport_bytes = kTransportBytesPerRequestByte * options.max_request_bytes;
  server->questions_ = std::make_unique<Admission>(
      Admission::Limits{.requests = kMaxQuestions,
                        .bytes = std::max(transport_bytes / kQuestionPartOfTransport, options.max_message_bytes),
                        .share_percent = options.caller_share_percent});
  server->watchdog_ = std::make_unique<Watchdog>(
      Watchdog::Limits{.first_message = std::chrono::seconds(options.first_message_timeout_seconds),
                       .message = std::chrono::seconds(options.message_timeout_seconds),
                       .reader = std::chrono::seconds(options.reply_timeout_seconds)});
  if (!options.metrics_listen.empty()) {  // First, for an address that is in use is a reason not to serve at all.
    PREFIXD_ASSIGN_OR_RETURN(server->metrics_endpoint_, MetricsEndpoint::Listen(options.metrics_listen));
    PREFIXD_ASSIGN_OR_RETURN(const cpu::Isa isa, cpu::FindIsa(options.cpu_isa));
    server->metrics_ =
        std::make_unique<Metrics>(BuildInfo{.version = kVersion,
                                            .numerics_version = kNumericsVersion,
                                            .device = server->device_->info().name,
                                            .cpu_isa = std::string(isa.name)},
                                  options.metrics_callers, [server = server.get()] { return server->State(); });
  }
  PREFIXD_ASSIGN_OR_RETURN(server->lanes_, LanePool::Create(*server->device_, options.lanes, options.staging_bytes,
                                                            std::chrono::microseconds(options.lane_poll_us)));
  server->batcher_ = std::make_unique<Batcher>(
      server->lanes_.get(), absl::Microseconds(options.batch_window_us), [](const absl::Status& status) {
        LogWarning(StrCat("a batch failed, its requests are run alone: ", status.message()), "batch failed");
      });
  const std::vector<std::string>& served_on = options.admin_listen.empty() ? options.listen : options.admin_listen;
  const bool is_of_this_host = std::all_of(served_on.begin(), served_on.end(), IsLoopback);
  server->benchmarks_.enabled = options.benchmark || (!options.no_benchmark && is_of_this_host);
  server->benchmarks_.max_bytes = options.max_benchmark_bytes;
  if (options.max_arrays > 0) {
    server->arrays_ = std::make_unique<ArrayStore>(
        ArrayStore::Limits{.arrays = options.max_arrays,
                           .bytes = options.max_array_bytes.value_or(MostArrayBytes(server->device_->info())),
                           .share_percent = options.caller_share_percent,
                           .default_ttl = absl::Seconds(options.array_ttl_seconds),
                           .max_ttl = absl::Seconds(options.max_array_ttl_seconds)});
  }
  server->context_ = {.device = server->device_.get(),
                      .lanes = server->lanes_.get(),
                      .batcher = server->batcher_.get(),
                      .admission = server->admission_.get(),
                      .questions = server->questions_.get(),
                      .arrays = server->arrays_.get(),
                      .watchdog = server->watchdog_.get(),
                      .benchmarks = &server->benchmarks_,
                      .device_name = server->device_->info().name,
                      .max_message_bytes = options.max_message_bytes,
                      .record =
                          [metrics = server->metrics_.get()](const CallRecord& record) {
                            if (record.call.is_logged) LogRequest(record);
                            if (metrics != nullptr) metrics->Count(record);
                          },
                      .on_device_lost = [server = server.get()](const absl::Status& s) { server->OnDeviceLost(s); }};
  std::vector<Network> proxies;
  proxies.reserve(options.trusted_proxies.size());
  for (const std::string& proxy : options.trusted_proxies) proxies.push_back(*Network::Parse(proxy));
  server->has_proxy_ = !proxies.empty();
  server->caller_limits_file_ = options.caller_limits;
  server->min_caller_bytes_ = HeldBytes::MostOfStream(options.max_message_bytes);  // Or no stream would go on.
  PREFIXD_ASSIGN_OR_RETURN(server->identities_,
                           Identities::Load(options.token_file, server->min_caller_bytes_, std::move(proxies)));
  PREFIXD_RETURN_IF_ERROR(server->TakeCallerLimits());
  server->context_.identities = server->identities_.get();
  PREFIXD_RETURN_IF_ERROR(server->Listen(options));
  if (server->metrics_endpoint_ != nullptr) {
    server->metrics_endpoint_->Start([metrics = server->metrics_.get()] { return metrics->Page(); });
    LogInfo(StrCat("metrics on ", options.metrics_listen, " (port ", server->metrics_endpoint_->port(), ")"));
    if (!IsLoopback(options.metrics_listen)) {
      LogWarning(StrCat("metrics on ", options.metrics_listen, ", which is not loopback: whoever connects reads them"));
    }
  }
  return server;
}

absl::Status Server::Listen(const Options& options) {
  if (!options.port_file.empty()) unlink(options.port_file.c_str());  // A crash may have left one, with an old port.
  if (!options.tls.certificate.empty()) {
    PREFIXD_ASSIGN_OR_RETURN(tls_, TlsCredentials::Load(options.tls));
  }
  const uint64_t free_descriptors = NumFreeDescriptors();
  if (free_descriptors < kReservedDescriptors + kMinConnections) {
    return absl::FailedPreconditionError(StrCat("the limit of open files leaves ", free_descriptors, ", and ",
                                                kReservedDescriptors + kMinConnections,
                                                " is the least to serve with: raise it (ulimit -n)"));
  }
  const uint64_t max_connections = std::min(options.max_connections, free_descriptors - kReservedDescriptors);
  if (max_connections < options.max_connections) {
    LogInfo(StrCat("the limit of open files allows ", max_connections, " connections"));
  }
  acceptor_.emplace(ConnectionTable::Limits{
      .connections = max_connections,
      .connections_per_address = options.max_connections_per_address,
      .cancelled_per_second =
          std::clamp(2 * options.max_requests, ConnectionTable::kMinCancelledPerSecond, RateLimit::kMaxPerSecond),
      .unread_bytes_per_call = options.max_message_bytes + Traffic::kMostWindowBytes});

  auto quota = std::make_shared<grpc::ResourceQuota>("prefixd");
  quota->Resize(kTransportBytesPerRequestByte * options.max_request_bytes);
  const auto add_primitives = [](ServerContext* context, Methods* methods) {
    AddPrefixMethods(context, methods);
    AddArrayMethods(context, methods);
    AddProgramMethods(context, methods);
  };
  const auto add_administration = [](ServerContext* context, Methods* methods) {
    AddAdminMethods(context, methods);
    AddDiagnosticsMethods(context, methods);
    AddReflectionMethods(context, methods);
  };
  queue_threads_.emplace(options.lane_poll_us > 0 ? kCallPollTime : std::chrono::milliseconds(0), Rpc::Deliver);
  if (options.admin_listen.empty()) {
    const auto add_all = [=](ServerContext* context, Methods* methods) {
      add_primitives(context, methods);
      add_administration(context, methods);
    };
    PREFIXD_RETURN_IF_ERROR(Serve(options, options.listen, add_all, quota));
  } else {
    PREFIXD_RETURN_IF_ERROR(Serve(options, options.listen, add_primitives, quota));
    PREFIXD_RETURN_IF_ERROR(Serve(options, options.admin_listen, add_administration, quota));
  }
  if (!options.port_file.empty()) {
    PREFIXD_RETURN_IF_ERROR(WritePortFile(options.port_file, ports_.front()));
    port_file_ = options.port_file;
  }
  acceptor_->Start([this](const absl::Status& status) {
    LogError(std::string(status.message()));
    on_failed_(Failure::kCannotAccept);
  });
  return absl::OkStatus();
}

absl::Status Server::Serve(const Options& options, const std::vector<std::string>& addresses,
                           const std::function<void(ServerContext*, Methods*)>& add,
                           std::shared_ptr<grpc::ResourceQuota> quota) {
  const auto add_with_health = [this, add](ServerContext* context, Methods* methods) {
    add(context, methods);
    health_.AddTo(context, methods);
  };
  grpc_.push_back(std::make_unique<GrpcServers>(context_,
                                                GrpcServers::Settings{.max_message_bytes = options.max_message_bytes,
                                                                      .max_connection_age = MaxConnectionAge(options),
                                                                      .quota = std::move(quota),
                                                                      .tcp = tls_ != nullptr ? tls_->grpc() : nullptr,
                                                                      .add = add_with_health},
                                                &*acceptor_, &*queue_threads_));
  for (const std::string& address : addresses) {
    if (!IsLoopback(address)) WarnOfCallers(address, options);
    PREFIXD_ASSIGN_OR_RETURN(
        const int port,
        acceptor_->Listen(address, {.mode = options.socket_mode, .group = options.socket_group},
                          [servers = grpc_.back().get()](const std::string& c) { return servers->DoorOf(c); }));
    if (!IsUnix(address)) ports_.push_back(port);
  }
  return grpc_.back()->Start();
}

absl::Status Server::TakeCallerLimits() {
  absl::StatusOr<CallerLimitsTable> read = LoadCallerLimits(caller_limits_file_, min_caller_bytes_);
  if (read.ok()) caller_limits_ = *read;
  CallerLimitsTable all = caller_limits_;
  for (const auto& [name, limits] : identities_->limits()) all.Override(name, limits);
  admission_->SetCallerLimits(std::move(all));
  return read.status();
}

void Server::Reload(bool is_asked_for) {
  if (is_asked_for) {
    const absl::Status tokens = identities_->Reload();
    if (!tokens.ok()) LogError(StrCat("the tokens stay as they are: ", std::string(tokens.message())));
    const absl::Status limits = TakeCallerLimits();
    if (!limits.ok()) LogError(StrCat("the callers' limits stay as they are: ", std::string(limits.message())));
  }
  if (tls_ == nullptr) return;
  const absl::StatusOr<TlsCredentials::Change> change = tls_->Reload();
  if (!change.ok() && (is_asked_for || change.status() != tls_status_)) {
    LogError(StrCat("TLS goes on with the files that it has: ", std::string(change.status().message())));
  } else if (change.ok() && *change == TlsCredentials::Change::kReloaded) {
    LogInfo("TLS has new files, for connections from now on");
  } else if (is_asked_for && change.ok()) {
    LogInfo("TLS's files have not changed");
  }
  tls_status_ = change.status();
}

Server::~Server() {
  if (acceptor_) acceptor_->Stop();
  admission_->Close(Draining());
  // A second Shutdown would not wait: for the reactors of a drained server, the first one is waited for.
  if (closed_ != nullptr) {
    closed_->WaitForNotification();
  } else {
    for (const auto& grpc : AllServers()) grpc->Shutdown(std::chrono::system_clock::now());
  }
  for (const auto& servers : grpc_) servers->Stop();
}

std::vector<std::shared_ptr<grpc::Server>> Server::AllServers() const {
  std::vector<std::shared_ptr<grpc::Server>> all;
  for (const auto& servers : grpc_) {
    for (std::shared_ptr<grpc::Server>& server : servers->All()) all.push_back(std::move(server));
  }
  return all;
}

uint64_t Server::Drain(DrainTimes times, const std::function<bool()>& hurry) {
  // Returns whether everything is to end at once.
  const auto wait = [&](absl::Duration time, const std::function<bool()>& is_over) {
    for (const absl::Time end = absl::Now() + time; absl::Now() < end && !is_over();) {
      if (hurry()) return true;
      absl::SleepFor(absl::Milliseconds(20));  // Until the next look: a signal wakes nobody.
    }
    return false;
  };
  health_.StopServing();
  const auto never = [] { return false; };
  const auto is_idle = [&] { return admission_->in_use().bytes == 0; };  // A request has bytes until its answer is out.
  bool hurries = wait(device_lost_ ? absl::ZeroDuration() : times.delay, never);
  acceptor_->Stop();
  benchmarks_.stopping = true;
  health_.EndWatches();
  watchdog_->EndIdle(Draining());  // Questions about the server, which nobody asks.
  const absl::Time end = absl::Now() + (hurries ? absl::ZeroDuration() : times.timeout);
  // After GOAWAY gRPC closes a connection right behind its last reply, and HAProxy 2.6 then loses that reply. A proxy
  // has heard of NOT_SERVING and needs no GOAWAY.
  if (has_proxy_ && !hurries) {
    hurries = wait(times.timeout / 2, is_idle) || wait(std::min(kProxyTakesReplies, times.timeout / 2), never);
  }
  // Sends GOAWAY on all connections, so that callers go elsewhere, and lets what is in flight end, until `timeout`. On
  // a thread of its own, for it waits for every reactor, also for one that a hung device holds.
  closed_ = std::make_shared<absl::Notification>();
  const absl::Duration timeout = hurries ? absl::ZeroDuration() : std::max(absl::ZeroDuration(), end - absl::Now());
  std::thread([grpc = AllServers(), closed = closed_,
               deadline = absl::ToChronoTime(absl::Now() + timeout + kCloseTimeout)] {
    std::vector<std::thread> shutdowns;
    shutdowns.reserve(grpc.size());
    for (const auto& server : grpc) shutdowns.emplace_back([&server, deadline] { server->Shutdown(deadline); });
    for (std::thread& shutdown : shutdowns) shutdown.join();
    closed->Notify();
  }).detach();
  wait(timeout, [&] { return is_idle() || closed_->HasBeenNotified(); });
  const uint64_t cut_off = admission_->in_use().requests;
  if (!device_lost_) admission_->Close(Draining());
  closed_->WaitForNotificationWithTimeout(kMaxCloseTime);
  if (!port_file_.empty()) unlink(port_file_.c_str());
  metrics_endpoint_.reset();
  return cut_off;
}

ServerState Server::State() {
  const Admission::Use use = admission_->in_use();
  const Admission::Limits limits = admission_->limits();
  const Admission::Use arrays = arrays_ != nullptr ? arrays_->in_use() : Admission::Use{};
  const ArrayStore::Limits array_limits = arrays_ != nullptr ? arrays_->limits() : ArrayStore::Limits{};
  const LanePool::Load load = lanes_->load();
  const Acceptor::Counts connections = acceptor_->counts();
  const DroppedLines dropped = CountDroppedLines();
  const MemoryUse memory = FindMemoryUse();
  return {.requests = use.requests,
          .max_requests = limits.requests,
          .request_bytes = use.bytes,
          .max_request_bytes = limits.bytes,
          .arrays = arrays.requests,
          .max_arrays = array_limits.arrays,
          .array_bytes = arrays.bytes,
          .max_array_bytes = array_limits.bytes,
          .staging_bytes = lanes_->used_staging_bytes(),
          .max_staging_bytes = lanes_->staging_bytes(),
          .device_memory_bytes = device_->info().memory_bytes,
          .device_memory_free_bytes = lanes_->free_memory_bytes(),
          .connections = connections.open,
          .max_connections = connections.limit,
          .connections_accepted = connections.accepted,
          .connections_refused = connections.refused,
          .connections_ended = connections.ended,
          .lanes = static_cast<uint64_t>(lanes_->num_lanes()),
          .lanes_busy = static_cast<uint64_t>(load.busy),
          .tasks_waiting = load.waiting,
          .log_lines_over_rate = dropped.over_rate,
          .log_lines_overrun = dropped.overrun,
          .resident_bytes = memory.resident_bytes,
          .in_use_bytes = memory.in_use_bytes};
}

void Server::OnDeviceLost(const absl::Status& status) {
  if (device_lost_.exchange(true)) return;
  LogError(StrCat("the device failed: ", status.message()));
  admission_->Close(status);
  health_.StopServing();
  on_failed_(Failure::kDeviceLost);
}

}  // namespace prefixd
