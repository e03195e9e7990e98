// Client::RunProgram, which is described there.
#ifndef PREFIXD_CLIENT_PROGRAM_H_
#define PREFIXD_CLIENT_PROGRAM_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/options.h"

namespace prefixd::client {

class Connection;  // connection.h, which is private to the library.

namespace internal {

absl::StatusOr<std::string> RunProgram(const Connection& connection, std::string_view program_json,
                                       const CallOptions& call);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_PROGRAM_H_
