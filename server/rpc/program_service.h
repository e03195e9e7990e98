// ProgramService: several operations in one call.
#ifndef PREFIXD_SERVER_RPC_PROGRAM_SERVICE_H_
#define PREFIXD_SERVER_RPC_PROGRAM_SERVICE_H_

#include "server/call/server_context.h"
#include "server/rpc/methods.h"

namespace prefixd {

// The context outlives the methods.
void AddProgramMethods(ServerContext* context, Methods* methods);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_PROGRAM_SERVICE_H_
