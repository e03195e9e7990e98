#include "server/rpc/grpc_status.h"

#include <chrono>

#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace prefixd {
namespace {

// It can't fail: a detail is far from the 2 GiB that a message may have.
void AddDetail(const google::protobuf::Message& detail, google::rpc::Status* details) {
  static_cast<void>(details->add_details()->PackFrom(detail));
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status, const std::string& request_id) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message(status.message());
  const std::string reason = ErrorReason(status);

  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason.empty() ? "DEVICE_ERROR" : reason);
  info.set_domain(std::string(kErrorDomain));
  (*info.mutable_metadata())["request_id"] = request_id;
  AddDetail(info, &details);
  if (const std::string field = ErrorField(status); !field.empty()) {
    google::rpc::BadRequest bad_request;
    google::rpc::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(message);
    AddDetail(bad_request, &details);
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    google::rpc::QuotaFailure quota;
    google::rpc::QuotaFailure::Violation* violation = quota.add_violations();
    const std::string subject = QuotaSubject(status);
    violation->set_subject(subject.empty() ? "server" : subject);
    violation->set_description(message);
    AddDetail(quota, &details);
    constexpr std::chrono::nanoseconds kRetryDelay = std::chrono::milliseconds(100);  // As a large unary request takes.
    const std::chrono::nanoseconds delay = RetryDelay(status).value_or(kRetryDelay);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(delay);
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(seconds.count());
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>((delay - seconds).count()));
    AddDetail(retry, &details);
  }
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace prefixd
