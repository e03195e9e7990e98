// AdminService::RunBenchmark: its messages to and from a benchmark's own words, and its reactor.
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/status.h"
#include "server/benchmark.h"
#include "server/grpc_status.h"
#include "server/service.h"
#include "server/wire_values.h"

namespace prefixd {
namespace {

template <class Domain, class Wire>
absl::Status DecodeAll(const google::protobuf::RepeatedField<Wire>& wire, Domain last, std::string_view field,
                       std::vector<Domain>* out) {
  for (const int value : wire) {
    PREFIXD_ASSIGN_OR_RETURN(out->emplace_back(), DecodeEnum(value, last, field));
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchmarkSpec> Decode(const v1::RunBenchmarkRequest& request) {
  BenchmarkSpec spec;
  PREFIXD_RETURN_IF_ERROR(DecodeAll(request.primitives(), Primitive::kCompact, "primitives", &spec.primitives));
  PREFIXD_RETURN_IF_ERROR(DecodeAll(request.dtypes(), DType::kF64, "dtypes", &spec.dtypes));
  PREFIXD_RETURN_IF_ERROR(DecodeAll(request.ops(), Op::kLinearRecurrence, "ops", &spec.ops));
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
  response.set_primitive(EncodeEnum<v1::Primitive>(measured.what.primitive));
  response.set_dtype(EncodeEnum<v1::DType>(measured.what.dtype));
  if (measured.what.primitive != Primitive::kCompact) response.set_op(EncodeEnum<v1::Op>(measured.what.op));
  EncodeAlgorithm(measured.what.algorithm, response.mutable_algorithm());
  response.set_num_items(measured.what.num_items);
  response.set_device(device);
  if (FollowsNumerics(measured.what.algorithm)) response.set_numerics_version(kNumericsVersion);
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
      : device_(context->device_name), benchmark_(context, Describe(call, "RunBenchmark", CallShape::kStream), this) {
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
    benchmark_.OnDone();
    delete this;
  }

 private:
  const std::string device_;
  uint32_t repetitions_ = 0;
  v1::RunBenchmarkResponse response_;
  Benchmark benchmark_;
};

}  // namespace

grpc::ServerWriteReactor<v1::RunBenchmarkResponse>* AdminService::RunBenchmark(grpc::CallbackServerContext* call,
                                                                               const v1::RunBenchmarkRequest* request) {
  return new BenchmarkReactor(context_, call, *request);
}

}  // namespace prefixd
