// How an error reaches the caller.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_GRPC_STATUS_H_
#define PREFIXD_SERVER_RPC_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace prefixd {

// Code, message and google.rpc details (ErrorInfo with the request's id; BadRequest, QuotaFailure and RetryInfo where
// they fit).
grpc::Status ToGrpcStatus(const absl::Status& status, const std::string& request_id);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_GRPC_STATUS_H_
