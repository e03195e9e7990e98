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
#include "proto/wire_spec.h"
#include "proto/wire_values.h"
#include "server/arrays/array_store.h"
#include "server/call/admission.h"
#include "server/call/benchmark.h"
#include "server/call/call.h"
#include "server/lanes/lane_pool.h"
#include "server/rpc/call_info.h"
#include "server/rpc/codec.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/reading_reactor.h"
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
  if (request.has_axis() || request.has_row_items()) {
    PREFIXD_ASSIGN_OR_RETURN(spec.axis, DecodeAxis(request));
  }
  if (request.precision() != v1::PRECISION_UNSPECIFIED) {
    PREFIXD_ASSIGN_OR_RETURN(spec.precision, DecodeEnum<Precision>(request.precision(), "precision"));
  }
  spec.return_indices = request.return_indices();
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

class BenchmarkReactor final : public Reactor, public BenchmarkTransport {
 public:
  BenchmarkReactor(ServerContext* context, Rpc* rpc)
      : Reactor(rpc),
        device_(context->device_name),
        benchmark_(context, CallInfoOf(*context, rpc, "RunBenchmark", CallShape::kStream), this) {}

  void OnStart() override {
    if (benchmark_.Start()) StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      benchmark_.OnReadEnd();
      return;
    }
    // Nobody is charged for the message: it is not kept while the end of a call waits to be taken.
    const grpc::ByteBuffer bytes = std::exchange(request_, grpc::ByteBuffer());
    v1::RunBenchmarkRequest request;
    if (absl::Status status = ParseMessage(bytes, &request); !status.ok()) {
      benchmark_.OnRequest(std::move(status));
      return;
    }
    absl::StatusOr<BenchmarkSpec> spec = Decode(request);
    if (spec.ok()) repetitions_ = spec->repetitions;
    benchmark_.OnRequest(std::move(spec));
  }

  void Write(const Measurement& measurement) override {
    response_ = SerializeArrayMessage(Encode(measurement, repetitions_, device_), {});
    StartWrite(&response_);
  }
  void Finish(const Result& result) override { Reactor::Finish(ToGrpcStatus(result.status, result.request_id)); }

  void OnWriteDone(bool ok) override { benchmark_.OnWriteDone(ok); }
  void OnCancel() override { benchmark_.OnCancel(); }
  void OnDone() override {
    benchmark_.OnDone(!WasCancelled());
    delete this;
  }

 private:
  const std::string device_;
  uint32_t repetitions_ = 0;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  Benchmark benchmark_;
};

void SetBudget(uint64_t limit, uint64_t used, v1::Budget* budget) {
  budget->set_limit(limit);
  budget->set_used(used);
}

// What the server says of itself. The lists of what it serves take long to encode and never change: they are encoded
// once, and all answers share their bytes. Threads: any.
class InfoWriter {
 public:
  explicit InfoWriter(const ServerContext* context) : context_(*context), lists_(EncodeLists(*context->device)) {}

  grpc::ByteBuffer Write(Admission::Use use) const {
    std::vector<grpc::Slice> parts;
    SerializeArrayMessage(Describe(use), {}).Dump(&parts);
    parts.push_back(lists_);  // Fields of a message come in any order.
    return grpc::ByteBuffer(parts.data(), parts.size());
  }

 private:
  static grpc::Slice EncodeLists(const Device& device) {
    v1::GetServerInfoResponse lists;
    EncodeAlgorithms(device, &lists);
    EncodeCapabilities(device, &lists);
    return grpc::Slice(lists.SerializeAsString());
  }
  v1::GetServerInfoResponse Describe(Admission::Use use) const;

  const ServerContext& context_;
  const absl::Time started_ = absl::Now();
  const grpc::Slice lists_;
};

v1::GetServerInfoResponse InfoWriter::Describe(Admission::Use use) const {
  v1::GetServerInfoResponse response;
  const DeviceInfo& device = context_.device->info();
  const Admission::Limits limits = context_.admission->limits();
  response.set_version(kVersion);
  response.set_numerics_version(kNumericsVersion);
  response.set_device(device.name);
  response.set_device_memory_bytes(device.memory_bytes);
  response.set_device_memory_free_bytes(context_.lanes->free_memory_bytes());
  response.set_lanes(context_.lanes->num_lanes());
  response.set_max_message_bytes(context_.max_message_bytes);
  response.set_max_reply_payload_bytes(kMaxReplyPayloadBytes);
  SetBudget(limits.requests, use.requests, response.mutable_requests());
  SetBudget(limits.bytes, use.bytes, response.mutable_request_bytes());
  SetBudget(context_.lanes->staging_bytes(), context_.lanes->used_staging_bytes(), response.mutable_staging_bytes());
  response.set_uptime_seconds(absl::ToInt64Seconds(absl::Now() - started_));
  if (context_.arrays != nullptr) {
    const Admission::Use arrays = context_.arrays->in_use();
    SetBudget(context_.arrays->limits().arrays, arrays.requests, response.mutable_arrays());
    SetBudget(context_.arrays->limits().bytes, arrays.bytes, response.mutable_array_bytes());
  }
  return response;
}

// Answers with bytes, so that no message is kept until they have left, and charges them: some tens of KiB.
class InfoReactor final : public ReadingReactor {
 public:
  InfoReactor(ServerContext* context, Rpc* rpc, std::shared_ptr<const InfoWriter> writer)
      : ReadingReactor(context, rpc, InfoOf(*context, rpc), Admission::Kind::kQuestion),
        admission_(*context->admission),
        writer_(std::move(writer)) {}

 private:
  static CallInfo InfoOf(const ServerContext& context, Rpc* rpc) {
    CallInfo info = CallInfoOf(context, rpc, "GetServerInfo", CallShape::kUnary);
    info.is_logged = false;  // Who watches a server asks every second.
    return info;
  }

  void OnRequest(const grpc::ByteBuffer& /*request*/) override {
    Admission::Use use = admission_.in_use();
    use.bytes -= Call::kBytes + charged_bytes();  // Without this call.
    grpc::ByteBuffer response = writer_->Write(use);
    absl::Status status = call().Charge(response.Length());
    if (status.ok()) call().CountSent(response.Length());
    End(std::move(status), response);
  }

  const Admission& admission_;
  const std::shared_ptr<const InfoWriter> writer_;
};

}  // namespace

void AddAdminMethods(ServerContext* context, Methods* methods) {
  constexpr const char* kService = v1::AdminService::service_full_name();
  methods->Add(kService, "GetServerInfo", [=, writer = std::make_shared<const InfoWriter>(context)](Rpc* rpc) {
    return new InfoReactor(context, rpc, writer);
  });
  methods->Add(kService, "RunBenchmark", [=](Rpc* rpc) { return new BenchmarkReactor(context, rpc); });
}

}  // namespace prefixd
