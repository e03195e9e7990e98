#include "client/benchmark.h"

#include <memory>

#include "base/status.h"
#include "client/attempts.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/rpc.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "proto/wire_values.h"

namespace prefixd::client {
namespace {

v1::RunBenchmarkRequest RequestOf(const BenchmarkSpec& spec) {
  v1::RunBenchmarkRequest wire;
  for (const Primitive primitive : spec.primitives) wire.add_primitives(EncodeEnum<v1::Primitive>(primitive));
  for (const DType dtype : spec.dtypes) wire.add_dtypes(EncodeEnum<v1::DType>(dtype));
  for (const Op op : spec.ops) wire.add_ops(EncodeEnum<v1::Op>(op));
  for (const Algorithm& algorithm : spec.algorithms) EncodeAlgorithm(algorithm, wire.add_algorithms());
  for (const uint64_t num_items : spec.num_items) wire.add_num_items(num_items);
  wire.set_repetitions(spec.repetitions);
  if (spec.axis) {
    wire.set_axis(static_cast<uint32_t>(spec.axis->along));
    wire.set_row_items(spec.axis->row_items);
  }
  if (spec.precision != Precision::kNative) wire.set_precision(EncodeEnum<v1::Precision>(spec.precision));
  wire.set_return_indices(spec.return_indices);
  return wire;
}

// Nothing for a combination that only a newer server knows.
std::optional<BenchmarkResult> ResultOf(const v1::RunBenchmarkResponse& response) {
  const auto primitive = KnownEnum<Primitive>(response.primitive());
  const auto dtype = KnownEnum<DType>(response.dtype());
  const auto op = KnownEnum<Op>(response.op());
  const auto algorithm = DecodeAlgorithm(response.algorithm(), "algorithm");
  if (!primitive || !dtype || !algorithm.ok() || (!op && response.op() != v1::OP_UNSPECIFIED)) return std::nullopt;
  BenchmarkResult result;
  result.primitive = *primitive;
  result.dtype = *dtype;
  result.op = op;
  result.algorithm = *algorithm;
  result.num_items = response.num_items();
  result.skipped = response.skipped();
  result.device = response.device();
  result.numerics_version = response.numerics_version();
  if (response.has_measurement()) {
    const v1::Measurement& wire = response.measurement();
    result.times = BenchmarkTimes{wire.p10_ns(), wire.median_ns(), wire.p90_ns(), wire.copy_ns()};
    result.num_bytes = wire.num_bytes();
    result.launches = wire.launches();
    result.repetitions = wire.repetitions();
  }
  return result;
}

}  // namespace

namespace internal {

absl::Status RunBenchmark(const Connection& connection, const BenchmarkSpec& spec, BenchmarkSink sink,
                          const CallOptions& call) {
  v1::RunBenchmarkRequest request = RequestOf(spec);
  request.set_request_id(call.request_id);
  const absl::Time deadline = Deadline(call);
  PREFIXD_RETURN_IF_ERROR(connection.status());
  Attempts attempts(connection, call, deadline);
  return Retry(attempts, [&](const Server& server) -> Outcome {
    AttemptContext context(server, call, deadline);
    auto stub = v1::AdminService::NewStub(server.channel());
    const auto reader = stub->RunBenchmark(context.get(), request);
    absl::Status sink_status;
    bool replied = false;
    for (v1::RunBenchmarkResponse response; reader->Read(&response);) {
      replied = true;
      if (!sink_status.ok()) continue;
      const std::optional<BenchmarkResult> result = ResultOf(response);
      if (result) sink_status = sink(*result);
      if (!sink_status.ok()) context.get()->TryCancel();
    }
    const absl::Status status = FromGrpc(reader->Finish());
    if (!sink_status.ok()) return {sink_status};
    return {ExplainDeadline(status, "the timeout passed before everything was measured"), !replied};
  });
}

}  // namespace internal
}  // namespace prefixd::client
