// The end of a call: gRPC's status, and Abseil's. Private to the library.
#ifndef PREFIXD_CLIENT_GRPC_STATUS_H_
#define PREFIXD_CLIENT_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace prefixd::client {

// Keeps code and message; reason, field and retry delay from the details, if there are any. IsCallStatus holds for it.
// Where TLS has failed, the message says first what that means.
absl::Status FromGrpc(const grpc::Status& status);

// Says what a timeout met, where gRPC says no more than "Deadline Exceeded". Leaves every other status as it is.
absl::Status ExplainDeadline(const absl::Status& status, std::string_view what);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_GRPC_STATUS_H_
