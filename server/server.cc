#include "server/server.h"

#include <stdio.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "kernels/status.h"
#include "server/log.h"

namespace prefixd {
namespace {

// Streams of one connection at once: a caller that wants more opens another connection.
constexpr int kMaxStreamsPerConnection = 1024;
// A caller whose host has gone without a word is noticed after the sum of these.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// For what is not ours to finish, such as health watches and streams that never sent a message.
constexpr absl::Duration kCloseTimeout = absl::Milliseconds(100);

bool IsUnix(std::string_view address) { return address.starts_with("unix:"); }

bool IsLoopback(std::string_view address) {
  return IsUnix(address) || address.starts_with("127.") || address.starts_with("localhost:") ||
         address.starts_with("[::1]:");
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

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, std::unique_ptr<Device> device,
                                                      std::function<void()> on_device_lost) {
  std::unique_ptr<Server> server(new Server);
  server->device_ = std::move(device);
  server->on_device_lost_ = std::move(on_device_lost);
  server->admission_ = std::make_unique<Admission>(options.max_requests, options.max_request_bytes);
  PREFIXD_ASSIGN_OR_RETURN(server->lanes_, LanePool::Create(*server->device_, options.lanes));
  server->context_ = {.device = server->device_.get(),
                      .lanes = server->lanes_.get(),
                      .admission = server->admission_.get(),
                      .device_name = server->device_->Info().name,
                      .max_message_bytes = options.max_message_bytes,
                      .log = LogRequest,
                      .on_device_lost = [server = server.get()](const absl::Status& s) { server->OnDeviceLost(s); }};
  server->prefix_service_ = std::make_unique<PrefixService>(&server->context_);
  server->admin_service_ = std::make_unique<AdminService>(&server->context_);
  PREFIXD_RETURN_IF_ERROR(server->Listen(options));
  return server;
}

absl::Status Server::Listen(const Options& options) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Without this a second server on the same port would silently take half of the callers.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(prefix_service_.get());
  builder.RegisterService(admin_service_.get());
  std::vector<int> bound(options.listen.size(), 0);
  for (size_t i = 0; i < options.listen.size(); ++i) {
    const std::string& address = options.listen[i];
    if (!IsLoopback(address)) {
      LogWarning(StrCat("listening on ", address,
                        ", which is not loopback: callers are not authenticated, keep it behind a proxy"));
    }
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &bound[i]);
  }
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) {
    // gRPC builds nothing if one address fails, and marks that one (and those after it) with port 0.
    for (size_t i = 0; i < bound.size(); ++i) {
      if (bound[i] == 0) {
        return absl::UnavailableError(
            StrCat("can't listen on ", options.listen[i], ": is it a valid HOST:PORT or unix:PATH, and is it free?"));
      }
    }
    return absl::UnavailableError(StrCat("can't listen on ", absl::StrJoin(options.listen, ", ")));
  }
  for (size_t i = 0; i < bound.size(); ++i) {
    if (IsUnix(options.listen[i])) {
      socket_files_.push_back(options.listen[i].substr(std::string_view("unix:").size()));
    } else {
      ports_.push_back(bound[i]);
    }
  }
  if (!options.port_file.empty()) {
    if (ports_.empty()) return absl::InternalError("--port-file needs a TCP address in --listen");
    PREFIXD_RETURN_IF_ERROR(WritePortFile(options.port_file, ports_.front()));
    port_file_ = options.port_file;
  }
  return absl::OkStatus();
}

Server::~Server() {
  admission_->Close(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "the server is stopping: retry elsewhere"));
  if (grpc_ != nullptr) grpc_->Shutdown(std::chrono::system_clock::now());
}

uint64_t Server::Drain(absl::Duration timeout, const std::function<bool()>& hurry) {
  const absl::Time deadline = absl::Now() + timeout;
  grpc_->GetHealthCheckService()->SetServingStatus(false);
  if (!device_lost_) {
    admission_->Close(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "the server is stopping: retry elsewhere"));
  }
  while (admission_->in_use().requests > 0 && absl::Now() < deadline && !hurry()) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  const uint64_t cut_off = admission_->in_use().requests;
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + kCloseTimeout));
  if (!port_file_.empty()) unlink(port_file_.c_str());
  for (const std::string& path : socket_files_) unlink(path.c_str());
  return cut_off;
}

void Server::OnDeviceLost(const absl::Status& status) {
  if (device_lost_.exchange(true)) return;
  LogError(StrCat("the device failed: ", status.message()));
  admission_->Close(status);
  if (grpc_ != nullptr) grpc_->GetHealthCheckService()->SetServingStatus(false);
  on_device_lost_();
}

}  // namespace prefixd
