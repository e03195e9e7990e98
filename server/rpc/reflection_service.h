// grpc.reflection.v1 and v1alpha: which services an address serves, and the files that describe them. Charged and
// watched like any stream, and asks for a token where there are tokens.
//
// Threads: those of CallQueues. Nothing here blocks.
#ifndef PREFIXD_SERVER_RPC_REFLECTION_SERVICE_H_
#define PREFIXD_SERVER_RPC_REFLECTION_SERVICE_H_

#include "server/call/server_context.h"
#include "server/rpc/methods.h"

namespace prefixd {

// Answers for all that `methods` serves. The context outlives the methods.
void AddReflectionMethods(ServerContext* context, Methods* methods);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_REFLECTION_SERVICE_H_
