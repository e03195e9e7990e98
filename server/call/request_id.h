// The name of a request in the log and in errors: the caller's, or one of our own.
// Threads: any.
#ifndef PREFIXD_SERVER_CALL_REQUEST_ID_H_
#define PREFIXD_SERVER_CALL_REQUEST_ID_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace prefixd {

// Errors: INVALID_ARGUMENT (REQUEST_ID) unless it is short and printable.
absl::Status CheckRequestId(std::string_view id);

// `asked_for` if it is fit for one, else a new one.
std::string RequestIdOf(const std::string& asked_for);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_REQUEST_ID_H_
