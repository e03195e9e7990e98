#include "client/grpc_status.h"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
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

// What gRPC's words about a connection mean; empty where they speak for themselves.
std::string_view MeaningOf(const std::string& message) {
  const std::string words = absl::AsciiStrToLower(message);  // OpenSSL's and BoringSSL's differ in case.
  const auto says = [&](const char* what) { return words.find(what) != std::string::npos; };
  if (says("certificate verify failed") || says("certificate_verify_failed")) {
    return "the server's certificate is not trusted: no authority that this client trusts has signed it, or it has "
           "expired";
  }
  if (says("not in peer certificate")) return "the server's certificate is for another host";
  if (says("wrong version number") || says("wrong_version_number")) return "the server does not speak TLS";
  if (says("failed to connect") && (says("socket closed") || says("connection reset"))) {
    return "the server hangs up: it may speak TLS only, or want a certificate of its callers";
  }
  // What gRPC 1.51 says too where it can't make a connection's TLS of the files.
  if (says("empty address list")) return "no host has this name, or the private key is not the certificate's";
  return "";
}

// HAProxy before 3.0 makes this of a stream that the server refuses while its caller still sends.
constexpr std::string_view kResetByProxy =
    "the call was reset on its way; a proxy may do so to what the server refuses, and lose the reason: "
    "the server's log has it, and where the server is only busy, trying again later helps";

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
        static_cast<void>(any.UnpackTo(&retry_info));  // Other details are of no use here.
      }
    }
  }
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string message = status.error_message();
  if (const std::string_view meaning = MeaningOf(message); code == absl::StatusCode::kUnavailable && !meaning.empty()) {
    message = StrCat(meaning, " (", message, ")");
  }
  if (code == absl::StatusCode::kCancelled && message.find("RST_STREAM") != std::string::npos) {
    message = StrCat(kResetByProxy, " (", message, ")");
  }
  absl::Status error = reason.empty() ? absl::Status(code, message) : Error(code, reason, field, message);
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
