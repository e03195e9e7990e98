// What a failed call's status tells beside code and message. ErrorReason and ErrorField (base/status.h) tell more.
#ifndef PREFIXD_CLIENT_CALL_STATUS_H_
#define PREFIXD_CLIENT_CALL_STATUS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace prefixd::client {

// How long the server asks to be left alone before another attempt (google.rpc.RetryInfo); nothing if it does not say.
// The client itself retries UNAVAILABLE only: RESOURCE_EXHAUSTED is the caller's to judge.
std::optional<absl::Duration> RetryDelay(const absl::Status& status);

// Whether a status is the end of a call, as the server or gRPC tells it; not an error of the caller's source or sink,
// or one found before anything was sent.
bool IsCallStatus(const absl::Status& status);

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CALL_STATUS_H_
