// Between the client's types and the messages of the contract. Private to the library, as everything with protobuf.
#ifndef PREFIXD_CLIENT_CONVERT_H_
#define PREFIXD_CLIENT_CONVERT_H_

#include <grpcpp/support/status.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/benchmark.h"
#include "client/spec.h"
#include "prefixd/v1/admin.pb.h"
#include "prefixd/v1/primitives.pb.h"

namespace prefixd::client {

// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) for a value of a type that IsSupported does not list.
absl::StatusOr<v1::ScanSpec> ToWire(const ScanSpec& spec);
absl::StatusOr<v1::ReduceSpec> ToWire(const ReduceSpec& spec);
absl::StatusOr<v1::CompactSpec> ToWire(const CompactSpec& spec);

Timing FromWire(const v1::Timing& timing);
// Of a response: the last one has it.
template <class Response>
std::optional<Timing> TimingOf(const Response& response) {
  return response.has_timing() ? std::optional(FromWire(response.timing())) : std::nullopt;
}
// dtype: of the value. Errors: INTERNAL if it is not one of that.
absl::StatusOr<ReduceReply> FromWire(const v1::ReduceResponse& response, DType dtype);
ServerInfo FromWire(const v1::GetServerInfoResponse& response);

v1::RunBenchmarkRequest ToWire(const BenchmarkSpec& spec);
// Nothing for a combination that only a newer server knows.
std::optional<BenchmarkResult> FromWire(const v1::RunBenchmarkResponse& response);

// Keeps code and message; reason, field and retry delay from the details, if there are any. IsCallStatus holds for it.
absl::Status FromWire(const grpc::Status& status);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CONVERT_H_
