// DiagnosticsService: sends back what it gets, so that a caller can measure the wire without the work.
//
// Threads: gRPC's callback threads; nothing here works, blocks or copies a message's bytes.
#ifndef PREFIXD_SERVER_RPC_DIAGNOSTICS_SERVICE_H_
#define PREFIXD_SERVER_RPC_DIAGNOSTICS_SERVICE_H_

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/call/server_context.h"

namespace prefixd {

// The context outlives the service.
std::unique_ptr<grpc::Service> MakeDiagnosticsService(ServerContext* context);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_DIAGNOSTICS_SERVICE_H_
