// PrefixService: scan, reduce, compact. There is one small reactor for each call shape, the Transport of a Session.
// Nothing here works or blocks: sessions decide, lanes work.
//
// Threads: gRPC's callback threads, and lane threads through Session.
#ifndef PREFIXD_SERVER_RPC_PREFIX_SERVICE_H_
#define PREFIXD_SERVER_RPC_PREFIX_SERVICE_H_

#include <memory>

#include "grpcpp/impl/service_type.h"
#include "server/call/server_context.h"

namespace prefixd {

// The context outlives the service.
std::unique_ptr<grpc::Service> MakePrefixService(ServerContext* context);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_PREFIX_SERVICE_H_
