// What is counted of a call, and how it reads.
#include "server/metrics/metrics.h"

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace prefixd {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;

// The value of a series on a page; "none" if it has no such line.
std::string ValueOf(const std::string& page, const std::string& series) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(page, '\n'))) {
    if (absl::StartsWith(line, series + " ")) return line.substr(series.size() + 1);
  }
  return "none";
}

class MetricsTest : public testing::Test {
 protected:
  void Count(const std::string& method, absl::Status status = absl::OkStatus(), uint64_t num_items = 0,
             std::optional<int64_t> total_ns = kMillisecondNs, const std::string& caller = "unix") {
    CallInfo call;
    call.caller.name = caller;
    call.method = method;
    Result result;
    result.status = std::move(status);
    result.timing.num_items = num_items;
    result.timing.server_total_ns = total_ns;
    metrics_.Count({.call = call,
                    .operation = nullptr,
                    .num_bytes_in = 8 * num_items,
                    .num_bytes_out = num_items,
                    .result = result});
  }
  std::string Value(const std::string& series) { return ValueOf(metrics_.Page(), series); }

  ServerState state_;
  Metrics metrics_{{.version = "1.2", .numerics_version = 7, .device = "a \"card\"\n\\", .cpu_isa = "neon"},
                   /*max_callers=*/2,
                   [this] { return state_; }};
};

TEST_F(MetricsTest, CallsCountByMethodCodeAndReason) {
  Count("Scan");
  Count("Scan");
  Count("Reduce");
  Count("Scan", Error(absl::StatusCode::kResourceExhausted, "BYTE_BUDGET", "", "full"));
  Count("Scan", absl::InternalError("no reason"));
  EXPECT_EQ(Value(R"(prefixd_requests_total{code="OK",method="Scan",reason=""})"), "2");
  EXPECT_EQ(Value(R"(prefixd_requests_total{code="OK",method="Reduce",reason=""})"), "1");
  EXPECT_EQ(Value(R"(prefixd_requests_total{code="RESOURCE_EXHAUSTED",method="Scan",reason="BYTE_BUDGET"})"), "1");
  EXPECT_EQ(Value(R"(prefixd_requests_total{code="INTERNAL",method="Scan",reason=""})"), "1");
}

TEST_F(MetricsTest, BytesAndElementsAddUp) {
  Count("Scan", absl::OkStatus(), 1000);
  Count("Scan", absl::OkStatus(), 234);
  EXPECT_EQ(Value(R"(prefixd_elements_total{method="Scan"})"), "1234");
  EXPECT_EQ(Value(R"(prefixd_received_bytes_total{method="Scan"})"), "9872");
  EXPECT_EQ(Value(R"(prefixd_sent_bytes_total{method="Scan"})"), "1234");
}

TEST_F(MetricsTest, DurationsAreInSeconds) {
  Count("Scan", absl::OkStatus(), 0, 2 * kMillisecondNs);
  Count("Scan", absl::OkStatus(), 0, 1250 * kMillisecondNs);
  Count("Scan", absl::OkStatus(), 0, std::nullopt);  // It never began.
  EXPECT_EQ(Value(R"(prefixd_request_duration_seconds_count{method="Scan"})"), "2");
  EXPECT_EQ(Value(R"(prefixd_request_duration_seconds_sum{method="Scan"})"), "1.252");
  EXPECT_EQ(Value(R"(prefixd_request_duration_seconds_bucket{method="Scan",le="0.001"})"), "0");
  EXPECT_EQ(Value(R"(prefixd_request_duration_seconds_bucket{method="Scan",le="0.0025"})"), "1");
  EXPECT_EQ(Value(R"(prefixd_request_duration_seconds_bucket{method="Scan",le="2.5"})"), "2");
}

TEST_F(MetricsTest, TheStateIsThatOfTheMomentAndNamesAreEscaped) {
  state_.lanes_busy = 3;
  state_.log_lines_overrun = 4;
  EXPECT_EQ(Value("prefixd_lanes_busy"), "3");
  EXPECT_EQ(Value(R"(prefixd_log_lines_dropped_total{cause="queue"})"), "4");
  state_.lanes_busy = 5;
  EXPECT_EQ(Value("prefixd_lanes_busy"), "5");
  EXPECT_EQ(Value(R"(prefixd_build_info{cpu_isa="neon",device="a \"card\"\n\\",numerics_version="7",version="1.2"})"),
            "1");
}

TEST_F(MetricsTest, SoManyCallersHaveSeriesOfTheirOwn) {
  for (int i = 0; i < 5; ++i) Count("Scan", absl::OkStatus(), 0, kMillisecondNs, "10.0.0.1");
  Count("Scan", absl::CancelledError("gone"), 0, kMillisecondNs, "a\xff\n\"b");
  for (int i = 0; i < 100; ++i) Count("Scan", absl::OkStatus(), 0, kMillisecondNs, absl::StrCat("10.0.1.", i));
  EXPECT_EQ(Value(R"(prefixd_caller_requests_total{caller="10.0.0.1",code="OK"})"), "5");
  EXPECT_EQ(Value(R"(prefixd_caller_requests_total{caller="a\\xff\\n\\\"b",code="CANCELLED"})"), "1");
  EXPECT_EQ(Value(R"x(prefixd_caller_requests_total{caller="(others)",code="OK"})x"), "100");
  EXPECT_THAT(metrics_.Page(), testing::Not(testing::HasSubstr("10.0.1.")));
}

TEST_F(MetricsTest, NothingIsLostOfWhatManyThreadsCount) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 2000;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      for (int call = 0; call < kCalls; ++call) {
        Count(absl::StrCat("Method", call % 3), i % 2 == 0 ? absl::OkStatus() : absl::CancelledError("gone"), 1);
        if (call % 500 == 0) metrics_.Page();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string page = metrics_.Page();
  int calls = 0, elements = 0, timed = 0;
  for (int i = 0; i < 3; ++i) {
    for (const char* code : {"OK", "CANCELLED"}) {
      calls += std::stoi(ValueOf(
          page, absl::StrCat("prefixd_requests_total{code=\"", code, "\",method=\"Method", i, "\",reason=\"\"}")));
    }
    elements += std::stoi(ValueOf(page, absl::StrCat("prefixd_elements_total{method=\"Method", i, "\"}")));
    timed += std::stoi(ValueOf(page, absl::StrCat("prefixd_request_duration_seconds_count{method=\"Method", i, "\"}")));
  }
  EXPECT_EQ(calls, kThreads * kCalls);
  EXPECT_EQ(elements, kThreads * kCalls);
  EXPECT_EQ(timed, kThreads * kCalls);
}

}  // namespace
}  // namespace prefixd
