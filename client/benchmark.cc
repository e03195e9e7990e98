#include "client/benchmark.h"

#include <memory>

#include "client/client.h"
#include "client/convert.h"
#include "client/rpc.h"
#include "prefixd/v1/admin.grpc.pb.h"

namespace prefixd::client {

absl::Status Client::RunBenchmark(const BenchmarkSpec& spec, BenchmarkSink sink, const CallOptions& call) {
  v1::RunBenchmarkRequest request = ToWire(spec);
  request.set_request_id(call.request_id);
  const absl::Time deadline = Deadline(call);
  Backoff backoff(connection_->options, call, deadline);
  for (;;) {
    AttemptContext context(call, deadline);
    auto stub = v1::AdminService::NewStub(connection_->channel);
    const auto reader = stub->RunBenchmark(context.get(), request);
    absl::Status sink_status;
    bool replied = false;
    for (v1::RunBenchmarkResponse response; reader->Read(&response);) {
      replied = true;
      if (!sink_status.ok()) continue;
      const std::optional<BenchmarkResult> result = FromWire(response);
      if (result) sink_status = sink(*result);
      if (!sink_status.ok()) context.get()->TryCancel();
    }
    absl::Status status = FromWire(reader->Finish());
    if (!sink_status.ok()) return sink_status;
    if (absl::IsUnavailable(status) && !replied && backoff.Pause()) continue;
    if (absl::IsDeadlineExceeded(status) && ErrorReason(status).empty()) {
      return absl::DeadlineExceededError("the timeout passed before everything was measured");
    }
    return status;
  }
}

}  // namespace prefixd::client
