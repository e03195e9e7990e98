#include "client/grpc_status.h"

#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "client/call_status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace prefixd::client {
namespace {

constexpr char kRetryDelayUrl[] = "prefixd/retry_delay";
constexpr char kCallStatusUrl[] = "prefixd/call_status";

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string reason;
  std::string field;
  google::rpc::RetryInfo retry_info;
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& any : details.details()) {
      google::rpc::ErrorInfo error_info;
      google::rpc::BadRequest bad_request;
      if (any.UnpackTo(&error_info) && error_info.domain() == kErrorDomain) {
        reason = error_info.reason();
      } else if (any.UnpackTo(&bad_request) && bad_request.field_violations_size() > 0) {
        field = bad_request.field_violations(0).field();
      } else {
        any.UnpackTo(&retry_info);
      }
    }
  }
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  absl::Status error =
      reason.empty() ? absl::Status(code, status.error_message()) : Error(code, reason, field, status.error_message());
  error.SetPayload(kCallStatusUrl, absl::Cord());
  if (!reason.empty() && retry_info.has_retry_delay()) {
    const absl::Duration delay =
        absl::Seconds(retry_info.retry_delay().seconds()) + absl::Nanoseconds(retry_info.retry_delay().nanos());
    error.SetPayload(kRetryDelayUrl, absl::Cord(absl::FormatDuration(delay)));
  }
  return error;
}

absl::Status ExplainDeadline(const absl::Status& status, std::string_view what) {
  if (!absl::IsDeadlineExceeded(status) || !ErrorReason(status).empty()) return status;
  absl::Status explained = absl::DeadlineExceededError(AbslView(what));
  // It remains what it was: the end of a call.
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { explained.SetPayload(url, payload); });
  return explained;
}

bool IsCallStatus(const absl::Status& status) { return status.GetPayload(kCallStatusUrl).has_value(); }

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayUrl);
  absl::Duration delay;
  if (!payload || !absl::ParseDuration(std::string(*payload), &delay)) return std::nullopt;
  return delay;
}

}  // namespace prefixd::client
