// Client::Echo, which is described there.
#ifndef PREFIXD_CLIENT_ECHO_H_
#define PREFIXD_CLIENT_ECHO_H_

#include "absl/status/status.h"
#include "client/chunk.h"
#include "client/options.h"

namespace prefixd::client {

class Connection;  // connection.h, which is private to the library.

namespace internal {

absl::Status Echo(const Connection& connection, ChunkSource& source, const CallOptions& call);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ECHO_H_
