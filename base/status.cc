#include "base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace prefixd {
namespace {

constexpr char kReasonUrl[] = "prefixd/reason";
constexpr char kFieldUrl[] = "prefixd/field";
constexpr char kQuotaSubjectUrl[] = "prefixd/quota_subject";
constexpr char kRetryDelayUrl[] = "prefixd/retry_delay_ns";

std::string Payload(const absl::Status& status, const char* url) {
  const auto payload = status.GetPayload(url);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status Error(absl::StatusCode code, std::string_view reason, std::string_view field, std::string_view message) {
  absl::Status status(code, AbslView(message));
  status.SetPayload(kReasonUrl, absl::Cord(AbslView(reason)));
  if (!field.empty()) status.SetPayload(kFieldUrl, absl::Cord(AbslView(field)));
  return status;
}

std::string ErrorReason(const absl::Status& status) { return Payload(status, kReasonUrl); }
std::string ErrorField(const absl::Status& status) { return Payload(status, kFieldUrl); }

absl::Status InPart(absl::Status status, std::string_view part) {
  const std::string field = ErrorField(status);
  status.SetPayload(kFieldUrl, absl::Cord(field.empty() ? StrCat(part) : StrCat(part, ".", field)));
  return status;
}

absl::Status WithQuotaSubject(absl::Status status, std::string_view subject) {
  status.SetPayload(kQuotaSubjectUrl, absl::Cord(AbslView(subject)));
  return status;
}

std::string QuotaSubject(const absl::Status& status) { return Payload(status, kQuotaSubjectUrl); }

absl::Status WithRetryDelay(absl::Status status, std::chrono::nanoseconds delay) {
  status.SetPayload(kRetryDelayUrl, absl::Cord(StrCat(delay.count())));
  return status;
}

std::optional<std::chrono::nanoseconds> RetryDelay(const absl::Status& status) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(Payload(status, kRetryDelayUrl), &count)) return std::nullopt;
  return std::chrono::nanoseconds(count);
}

}  // namespace prefixd
