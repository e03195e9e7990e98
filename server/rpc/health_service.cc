#include "server/rpc/health_service.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "proto/array_message.h"
#include "server/rpc/call_info.h"
#include "server/rpc/reading_reactor.h"

namespace prefixd {
namespace {

namespace health = grpc::health::v1;

CallInfo InfoOf(const ServerContext& context, Rpc* rpc, const char* method, CallShape shape) {
  CallInfo info = CallInfoOf(context, rpc, method, shape);
  info.refusal = absl::OkStatus();  // Who has no token may ask as well.
  info.is_logged = false;           // Balancers ask every second.
  return info;
}

bool Knows(const Methods& methods, const std::string& service) {
  return service.empty() || methods.services().contains(service);
}

grpc::ByteBuffer Response(health::HealthCheckResponse::ServingStatus status) {
  health::HealthCheckResponse response;
  response.set_status(status);
  return SerializeArrayMessage(response, {});
}

// Errors: INVALID_ARGUMENT (MALFORMED).
absl::StatusOr<std::string> ServiceOf(const grpc::ByteBuffer& bytes) {
  health::HealthCheckRequest request;
  PREFIXD_RETURN_IF_ERROR(ParseMessage(bytes, &request));
  return request.service();
}

}  // namespace

class HealthService::CheckReactor final : public ReadingReactor {
 public:
  CheckReactor(HealthService* service, ServerContext* context, Rpc* rpc, const Methods* methods)
      : ReadingReactor(context, rpc, InfoOf(*context, rpc, "HealthCheck", CallShape::kUnary),
                       Admission::Kind::kQuestion),
        health_(*service),
        methods_(*methods) {}

 private:
  void OnRequest(const grpc::ByteBuffer& request) override {
    const absl::StatusOr<std::string> service = ServiceOf(request);
    if (!service.ok()) return End(service.status());
    if (!Knows(methods_, *service)) {
      return End(Error(absl::StatusCode::kNotFound, "NO_SUCH_SERVICE", "service",
                       "this address serves no such service: leave `service` empty to ask for the server"));
    }
    bool is_serving = false;
    {
      MutexLock lock(health_.mutex_);
      is_serving = health_.is_serving_;
    }
    End(absl::OkStatus(),
        Response(is_serving ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING));
  }

  HealthService& health_;
  const Methods& methods_;
};

// Its state is guarded by the service's lock, which nothing is done under that could wait.
class HealthService::WatchReactor final : public ReadingReactor {
 public:
  WatchReactor(HealthService* service, ServerContext* context, Rpc* rpc, const Methods* methods)
      : ReadingReactor(context, rpc, InfoOf(*context, rpc, "HealthWatch", CallShape::kStream),
                       Admission::Kind::kQuestion),
        health_(*service),
        methods_(*methods) {}

  // Sends what has changed, or ends. Called whenever something may have.
  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(health_.mutex_) {
    if (!watches_ || writing_ || ended_) return;
    health::HealthCheckResponse::ServingStatus status = health::HealthCheckResponse::SERVICE_UNKNOWN;
    if (is_known_) {
      status = health_.is_serving_ ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
    }
    if (is_broken_) {
      ended_ = true;
      End(call().Cancel());
    } else if (status != said_) {
      said_ = status;
      writing_ = true;
      ++num_writes_;
      response_ = Response(status);
      StartWrite(&response_);
    } else if (health_.ends_watches_) {
      ended_ = true;
      End(Error(absl::StatusCode::kUnavailable, "DRAINING", "", "the server is stopping: watch another"));
    }
  }

  void UpdateUnderLockOfService() {
    health_.mutex_.AssertHeld();
    Update();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(health_.mutex_);
    writing_ = false;
    is_broken_ = is_broken_ || !ok;
    Update();
  }
  void OnCancel() override {
    ReadingReactor::OnCancel();
    MutexLock lock(health_.mutex_);
    is_broken_ = true;
    Update();
  }
  void OnDone() override {
    {
      MutexLock lock(health_.mutex_);
      health_.watches_.erase(this);
    }
    ReadingReactor::OnDone();
  }

 private:
  void OnRequest(const grpc::ByteBuffer& request) override {
    const absl::StatusOr<std::string> service = ServiceOf(request);
    if (!service.ok()) return End(service.status());
    MutexLock lock(health_.mutex_);
    watches_ = true;
    is_known_ = Knows(methods_, *service);
    health_.watches_.insert(this);
    Update();
  }
  // Who watches waits for us, unless he does not take what we say.
  Watched::Sight LookAtAnswer() override {
    MutexLock lock(health_.mutex_);
    return {.waits_for = writing_ || ended_ ? WaitsFor::kReader : WaitsFor::kNothing, .progress = num_writes_};
  }

  HealthService& health_;
  const Methods& methods_;
  bool watches_ ABSL_GUARDED_BY(health_.mutex_) = false;  // It has said what.
  bool is_known_ ABSL_GUARDED_BY(health_.mutex_) = false;
  bool is_broken_ ABSL_GUARDED_BY(health_.mutex_) = false;  // Nobody listens any more.
  bool writing_ ABSL_GUARDED_BY(health_.mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(health_.mutex_) = false;
  uint64_t num_writes_ ABSL_GUARDED_BY(health_.mutex_) = 0;
  std::optional<health::HealthCheckResponse::ServingStatus> said_ ABSL_GUARDED_BY(health_.mutex_);
  grpc::ByteBuffer response_;
};

void HealthService::AddTo(ServerContext* context, Methods* methods) {
  constexpr const char* kService = health::Health::service_full_name();
  methods->Add(kService, "Check", [=, this](Rpc* rpc) { return new CheckReactor(this, context, rpc, methods); });
  methods->Add(kService, "Watch", [=, this](Rpc* rpc) { return new WatchReactor(this, context, rpc, methods); });
}

void HealthService::UpdateAll() {
  for (WatchReactor* watch : watches_) watch->UpdateUnderLockOfService();
}

void HealthService::StopServing() {
  MutexLock lock(mutex_);
  is_serving_ = false;
  UpdateAll();
}

void HealthService::EndWatches() {
  MutexLock lock(mutex_);
  ends_watches_ = true;
  UpdateAll();
}

}  // namespace prefixd
