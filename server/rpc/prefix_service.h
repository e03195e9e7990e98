// PrefixService: scan, reduce, compact, difference. One small reactor a call, the Transport of a Session. Nothing here
// works or blocks: sessions decide, lanes work.
//
// Threads: those of CallQueues, and lane threads through Session.
#ifndef PREFIXD_SERVER_RPC_PREFIX_SERVICE_H_
#define PREFIXD_SERVER_RPC_PREFIX_SERVICE_H_

#include "server/call/server_context.h"
#include "server/rpc/methods.h"

namespace prefixd {

// The context outlives the methods.
void AddPrefixMethods(ServerContext* context, Methods* methods);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_PREFIX_SERVICE_H_
