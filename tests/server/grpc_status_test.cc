#include "server/rpc/grpc_status.h"

#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

TEST(GrpcStatusTest, CarriesCodeReasonFieldAndRetry) {
  const grpc::Status status =
      ToGrpcStatus(Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data", "too short"), "id7");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "too short");
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad_request;
  ASSERT_EQ(details.details_size(), 2);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  ASSERT_TRUE(details.details(1).UnpackTo(&bad_request));
  EXPECT_EQ(info.reason(), "MASK_LENGTH");
  EXPECT_EQ(info.domain(), "prefixd");
  EXPECT_EQ(info.metadata().at("request_id"), "id7");
  EXPECT_EQ(bad_request.field_violations(0).field(), "mask.inline.data");

  const grpc::Status busy = ToGrpcStatus(Error(absl::StatusCode::kResourceExhausted, "BYTE_BUDGET", "", "full"), "");
  ASSERT_TRUE(details.ParseFromString(busy.error_details()));
  ASSERT_EQ(details.details_size(), 3);
  EXPECT_TRUE(details.details(1).Is<google::rpc::QuotaFailure>());
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(2).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 0);
  EXPECT_EQ(retry.retry_delay().nanos(), 100'000'000);

  const grpc::Status later =
      ToGrpcStatus(WithRetryDelay(Error(absl::StatusCode::kResourceExhausted, "CALLER_RATE", "", "too fast"),
                                  std::chrono::seconds(2) + std::chrono::nanoseconds(7)),
                   "");
  ASSERT_TRUE(details.ParseFromString(later.error_details()));
  ASSERT_TRUE(details.details(2).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 7);
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus(), "").ok());
}

}  // namespace
}  // namespace prefixd
