// AdminService: what the server is and has, and benchmarks.
//
// Threads: gRPC's callback threads, and lane threads through Benchmark. Nothing here works or blocks.
#ifndef PREFIXD_SERVER_RPC_ADMIN_SERVICE_H_
#define PREFIXD_SERVER_RPC_ADMIN_SERVICE_H_

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/call/server_context.h"

namespace prefixd {

// The context outlives the service.
std::unique_ptr<grpc::Service> MakeAdminService(ServerContext* context);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_ADMIN_SERVICE_H_
