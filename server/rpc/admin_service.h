// AdminService: what the server is and has, and benchmarks.
//
// Threads: those of CallQueues, and lane threads through Benchmark. Nothing here works or blocks.
#ifndef PREFIXD_SERVER_RPC_ADMIN_SERVICE_H_
#define PREFIXD_SERVER_RPC_ADMIN_SERVICE_H_

#include "server/call/server_context.h"
#include "server/rpc/methods.h"

namespace prefixd {

// The context outlives the methods.
void AddAdminMethods(ServerContext* context, Methods* methods);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_ADMIN_SERVICE_H_
