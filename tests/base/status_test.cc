#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace prefixd {
namespace {

TEST(ErrorTest, CarriesReasonAndField) {
  const absl::Status status =
      Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data", "3 bytes for 4 elements");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "3 bytes for 4 elements");
  EXPECT_EQ(ErrorReason(status), "MASK_LENGTH");
  EXPECT_EQ(ErrorField(status), "mask.inline.data");
}

TEST(ErrorTest, WithoutThem) {
  EXPECT_EQ(ErrorField(Error(absl::StatusCode::kUnavailable, "DEVICE_LOST", "", "gone")), "");
  EXPECT_EQ(ErrorReason(absl::InternalError("plain")), "");
  EXPECT_EQ(ErrorField(absl::InternalError("plain")), "");
  EXPECT_EQ(ErrorReason(absl::OkStatus()), "");
  EXPECT_EQ(RetryDelay(absl::InternalError("plain")), std::nullopt);
}

TEST(ErrorTest, CarriesWhoseQuotaItIsAndWhenToRetry) {
  const absl::Status status = Error(absl::StatusCode::kResourceExhausted, "CALLER_RATE", "", "too fast");
  EXPECT_EQ(QuotaSubject(WithQuotaSubject(status, "alice")), "alice");
  EXPECT_EQ(RetryDelay(WithRetryDelay(status, std::chrono::nanoseconds(1))), std::chrono::nanoseconds(1));
  EXPECT_EQ(RetryDelay(WithRetryDelay(status, std::chrono::hours(1))), std::chrono::hours(1));
  EXPECT_EQ(ErrorReason(WithRetryDelay(status, std::chrono::hours(1))), "CALLER_RATE");
}

absl::StatusOr<std::unique_ptr<int>> Make(bool works) {
  if (!works) return absl::NotFoundError("nothing");
  return std::make_unique<int>(7);
}

absl::StatusOr<int> Use(absl::Status before, bool works, int* num_steps) {
  PREFIXD_RETURN_IF_ERROR(before);
  ++*num_steps;
  PREFIXD_ASSIGN_OR_RETURN(const std::unique_ptr<int> made, Make(works));
  ++*num_steps;
  return *made;
}

TEST(StatusMacrosTest, ReturnAtTheFirstError) {
  int num_steps = 0;
  EXPECT_EQ(Use(absl::OkStatus(), true, &num_steps).value(), 7);
  EXPECT_EQ(num_steps, 2);
  num_steps = 0;
  EXPECT_EQ(Use(absl::AbortedError("no"), true, &num_steps).status(), absl::AbortedError("no"));
  EXPECT_EQ(num_steps, 0);
  EXPECT_EQ(Use(absl::OkStatus(), false, &num_steps).status(), absl::NotFoundError("nothing"));
  EXPECT_EQ(num_steps, 1);
}

TEST(StrCatTest, TakesViewsOfBothKinds) {
  const std::string_view std_view = "std";
  EXPECT_EQ(StrCat(std_view, " ", AbslView(std_view), " ", std::string("string"), " ", 42, " ", 2.5),
            "std std string 42 2.5");
  EXPECT_EQ(StrCat(), "");
  EXPECT_EQ(AbslView(std_view.substr(1)), "td");
}

}  // namespace
}  // namespace prefixd
