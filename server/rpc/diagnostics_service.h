// DiagnosticsService: sends back what it gets, so that a caller can measure the wire without the work.
//
// Threads: those of CallQueues; nothing here works, blocks or copies a message's bytes.
#ifndef PREFIXD_SERVER_RPC_DIAGNOSTICS_SERVICE_H_
#define PREFIXD_SERVER_RPC_DIAGNOSTICS_SERVICE_H_

#include "server/call/server_context.h"
#include "server/rpc/methods.h"

namespace prefixd {

// The context outlives the methods.
void AddDiagnosticsMethods(ServerContext* context, Methods* methods);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_DIAGNOSTICS_SERVICE_H_
