// Who calls, and until when: what gRPC knows of a call.
//
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_CALL_INFO_H_
#define PREFIXD_SERVER_RPC_CALL_INFO_H_

#include <string>

#include "server/call/call_record.h"
#include "server/call/server_context.h"
#include "server/rpc/reactor.h"

namespace prefixd {

// Sends the caller's trace parent back, if it is one.
CallInfo CallInfoOf(const ServerContext& context, Rpc* rpc, std::string method, CallShape shape);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CALL_INFO_H_
