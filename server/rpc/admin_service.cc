#include "server/rpc/admin_service.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "kernels/device.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "proto/array_message.h"
#include "proto/wire_values.h"
#include "server/call/admission.h"
#include "server/call/benchmark.h"
#include "server/call/call.h"
#include "server/lanes/lane_pool.h"
#include "server/rpc/call_info.h"
#include "server/rpc/codec.h"
#include "server/rpc/grpc_status.h"
#include "server/version.h"

namespace prefixd {
namespace {

template <class Domain, class Wire>
absl::Status DecodeAll(const google::protobuf::RepeatedField<Wire>& wire, std::string_view field,
                       std::vector<Domain>* out) {
  for (const int value : wire) {
    PREFIXD_ASSIGN_OR_RETURN(out->emplace_back(), DecodeEnum<Domain>(value, field));
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchmarkSpec> Decode(const v1::RunBenchmarkRequest& request) {
  BenchmarkSpec spec;
  PREFIXD_RETURN_IF_ERROR(DecodeAll(request.primitives(), "primitives", &spec.primitives));
  PREFIXD_RETURN_IF_ERROR(DecodeAll(request.dtypes(), "dtypes", &spec.dtypes));
  PREFIXD_RETURN_IF_ERROR(DecodeAll(request.ops(), "ops", &spec.ops));
  for (const v1::AlgorithmChoice& choice : request.algorithms()) {
    PREFIXD_ASSIGN_OR_RETURN(spec.algorithms.emplace_back(), DecodeAlgorithm(choice, "algorithms"));
  }
  spec.sizes.assign(request.num_items().begin(), request.num_items().end());
  if (request.repetitions() != 0) spec.repetitions = request.repetitions();
  spec.request_id = request.request_id();
  return spec;
}

v1::RunBenchmarkResponse Encode(const Measurement& measured, uint32_t repetitions, const std::string& device) {
  v1::RunBenchmarkResponse response;
  const Spec& spec = measured.what.spec;
  response.set_primitive(EncodeEnum<v1::Primitive>(PrimitiveOf(spec)));
  response.set_dtype(EncodeEnum<v1::DType>(InputOf(spec)));
  if (const auto op = OpOf(spec)) response.set_op(EncodeEnum<v1::Op>(*op));
  EncodeAlgorithm(AlgorithmOf(spec), response.mutable_algorithm());
  response.set_num_items(measured.what.num_items);
  response.set_device(device);
  if (FollowsNumerics(AlgorithmOf(spec))) response.set_numerics_version(kNumericsVersion);
  if (!measured.skipped.empty()) {
    response.set_skipped(measured.skipped);
    return response;
  }
  v1::Measurement* wire = response.mutable_measurement();
  wire->set_p10_ns(measured.p10_ns);
  wire->set_median_ns(measured.median_ns);
  wire->set_p90_ns(measured.p90_ns);
  wire->set_copy_ns(measured.copy_ns);
  wire->set_num_bytes(measured.num_bytes);
  wire->set_launches(measured.launches);
  wire->set_repetitions(repetitions);
  return response;
}

class BenchmarkReactor final : public grpc::ServerWriteReactor<v1::RunBenchmarkResponse>, public BenchmarkTransport {
 public:
  BenchmarkReactor(ServerContext* context, grpc::CallbackServerContext* call, const v1::RunBenchmarkRequest& request)
      : call_(call),
        device_(context->device_name),
        benchmark_(context, CallInfoOf(*context, call, "RunBenchmark", CallShape::kStream), this) {
    absl::StatusOr<BenchmarkSpec> spec = Decode(request);
    if (spec.ok()) repetitions_ = spec->repetitions;
    benchmark_.Start(std::move(spec));
  }

  void Write(const Measurement& measurement) override {
    response_ = Encode(measurement, repetitions_, device_);
    StartWrite(&response_);
  }
  void Finish(const Result& result) override {
    grpc::ServerWriteReactor<v1::RunBenchmarkResponse>::Finish(ToGrpcStatus(result.status, result.request_id));
  }

  void OnWriteDone(bool ok) override { benchmark_.OnWriteDone(ok); }
  void OnCancel() override { benchmark_.OnCancel(); }
  void OnDone() override {
    benchmark_.OnDone(!call_->IsCancelled());
    delete this;
  }

 private:
  grpc::CallbackServerContext* const call_;
  const std::string device_;
  uint32_t repetitions_ = 0;
  v1::RunBenchmarkResponse response_;
  Benchmark benchmark_;
};

void SetBudget(uint64_t limit, uint64_t used, v1::Budget* budget) {
  budget->set_limit(limit);
  budget->set_used(used);
}

// Answers with bytes, so that no message is kept until they have left, and charges them: some tens of KiB.
class InfoReactor final : public grpc::ServerUnaryReactor {
 public:
  InfoReactor(ServerContext* context, grpc::CallbackServerContext* rpc, const grpc::ByteBuffer& request,
              absl::Time started, grpc::ByteBuffer* response)
      : rpc_(rpc), call_(context, InfoOf(*context, rpc)) {
    call_.Watch();
    call_.Begin("");
    call_.CountReceived(request.Length());
    const Admission::Use use = context->admission->in_use();  // Without this call.
    absl::Status status = call_.Admit(Admission::Kind::kQuestion);
    if (status.ok()) {
      *response = SerializeArrayMessage(Describe(*context, use, started), {});
      call_.CountSent(response->Length());
      status = call_.Charge(request.Length() + response->Length());
      if (!status.ok()) response->Clear();
    }
    const Result& result = call_.Finish({.result = {.status = std::move(status)}});
    Finish(ToGrpcStatus(result.status, result.request_id));
  }

  void OnDone() override {
    call_.Done(!rpc_->IsCancelled());
    delete this;
  }

 private:
  static CallInfo InfoOf(const ServerContext& context, grpc::CallbackServerContext* rpc) {
    CallInfo info = CallInfoOf(context, rpc, "GetServerInfo", CallShape::kUnary);
    info.is_logged = false;  // Who watches a server asks every second.
    return info;
  }
  static v1::GetServerInfoResponse Describe(const ServerContext& context, Admission::Use use, absl::Time started);

  grpc::CallbackServerContext* const rpc_;
  Call call_;
};

v1::GetServerInfoResponse InfoReactor::Describe(const ServerContext& context, Admission::Use use, absl::Time started) {
  v1::GetServerInfoResponse response;
  const DeviceInfo& device = context.device->info();
  const Admission::Limits limits = context.admission->limits();
  response.set_version(kVersion);
  response.set_numerics_version(kNumericsVersion);
  response.set_device(device.name);
  response.set_device_memory_bytes(device.memory_bytes);
  response.set_device_memory_free_bytes(context.lanes->free_memory_bytes());
  response.set_lanes(context.lanes->num_lanes());
  response.set_max_message_bytes(context.max_message_bytes);
  response.set_max_reply_payload_bytes(kMaxReplyPayloadBytes);
  SetBudget(limits.requests, use.requests, response.mutable_requests());
  SetBudget(limits.bytes, use.bytes, response.mutable_request_bytes());
  SetBudget(context.lanes->staging_bytes(), context.lanes->used_staging_bytes(), response.mutable_staging_bytes());
  response.set_uptime_seconds(absl::ToInt64Seconds(absl::Now() - started));
  EncodeAlgorithms(*context.device, &response);
  EncodeCapabilities(*context.device, &response);
  return response;
}

using RawAdminService = v1::AdminService::WithRawCallbackMethod_GetServerInfo<
    v1::AdminService::WithCallbackMethod_RunBenchmark<v1::AdminService::Service>>;

class AdminService final : public RawAdminService {
 public:
  explicit AdminService(ServerContext* context) : context_(context), started_(absl::Now()) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* rpc, const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override {
    return new InfoReactor(context_, rpc, *request, started_, response);
  }

  grpc::ServerWriteReactor<v1::RunBenchmarkResponse>* RunBenchmark(grpc::CallbackServerContext* call,
                                                                   const v1::RunBenchmarkRequest* request) override {
    return new BenchmarkReactor(context_, call, *request);
  }

 private:
  ServerContext* const context_;
  const absl::Time started_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(ServerContext* context) {
  return std::make_unique<AdminService>(context);
}

}  // namespace prefixd
