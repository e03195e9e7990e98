#include "client/server_info.h"

#include <utility>

#include "base/status.h"
#include "client/attempts.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/rpc.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "prefixd/v1/admin.grpc.pb.h"
#include "proto/wire_algorithm_info.h"
#include "proto/wire_values.h"

namespace prefixd::client {
namespace {

// Nothing for a combination that only a newer server knows.
std::optional<Capability> CapabilityOf(const v1::Capability& wire) {
  const auto primitive = KnownEnum<Primitive>(wire.primitive());
  const auto dtype = KnownEnum<DType>(wire.dtype());
  const auto op = KnownEnum<Op>(wire.op());
  const auto algorithm = DecodeAlgorithm(wire.algorithm(), "algorithm");
  if (!primitive || !dtype || !algorithm.ok() || (!op && wire.op() != v1::OP_UNSPECIFIED)) return std::nullopt;
  return Capability{*primitive, *dtype,     KnownEnum<DType>(wire.out_dtype()).value_or(*dtype),
                    op,         *algorithm, wire.has_wide()};
}

ServerInfo InfoOf(const v1::GetServerInfoResponse& response) {
  const auto budget = [](const v1::Budget& wire) { return Budget{wire.limit(), wire.used()}; };
  ServerInfo info;
  info.version = response.version();
  info.numerics_version = response.numerics_version();
  info.device = response.device();
  info.device_memory_bytes = response.device_memory_bytes();
  info.device_memory_free_bytes = response.device_memory_free_bytes();
  info.lanes = response.lanes();
  info.max_message_bytes = response.max_message_bytes();
  info.max_reply_payload_bytes = response.max_reply_payload_bytes();
  info.requests = budget(response.requests());
  info.request_bytes = budget(response.request_bytes());
  info.staging_bytes = budget(response.staging_bytes());
  info.arrays = budget(response.arrays());
  info.array_bytes = budget(response.array_bytes());
  info.uptime_seconds = response.uptime_seconds();
  for (const v1::Capability& wire : response.capabilities()) {
    if (const std::optional<Capability> capability = CapabilityOf(wire)) info.capabilities.push_back(*capability);
  }
  for (const v1::AlgorithmInfo& wire : response.algorithms()) {
    if (std::optional<AlgorithmInfo> row = FromWire(wire)) info.algorithms.push_back(*std::move(row));
  }
  return info;
}

}  // namespace

namespace internal {

absl::StatusOr<ServerInfo> GetServerInfo(const Connection& connection, const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  v1::GetServerInfoResponse response;
  PREFIXD_RETURN_IF_ERROR(connection.status());
  Attempts attempts(connection, call, deadline);
  PREFIXD_RETURN_IF_ERROR(Retry(attempts, [&](const Server& server) -> Outcome {
    AttemptContext context(server, call, deadline);
    auto stub = v1::AdminService::NewStub(server.channel());
    return {UnaryStatus(FromGrpc(stub->GetServerInfo(context.get(), {}, &response))), true};
  }));
  return InfoOf(response);
}

absl::StatusOr<bool> CheckHealth(const Connection& connection, const CallOptions& call) {
  const absl::Time deadline = Deadline(call);
  grpc::health::v1::HealthCheckResponse response;
  PREFIXD_RETURN_IF_ERROR(connection.status());
  Attempts attempts(connection, call, deadline);
  PREFIXD_RETURN_IF_ERROR(Retry(attempts, [&](const Server& server) -> Outcome {
    AttemptContext context(server, call, deadline);
    auto stub = grpc::health::v1::Health::NewStub(server.channel());
    return {UnaryStatus(FromGrpc(stub->Check(context.get(), {}, &response))), true};
  }));
  return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

}  // namespace internal
}  // namespace prefixd::client
