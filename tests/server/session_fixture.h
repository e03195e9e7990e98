// A session's surroundings in tests: lanes of a fake device, budgets, a log, and whole requests through a fake
// transport.
#ifndef PREFIXD_TESTS_SERVER_SESSION_FIXTURE_H_
#define PREFIXD_TESTS_SERVER_SESSION_FIXTURE_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "server/call/session.h"
#include "tests/server/fake_device.h"
#include "tests/server/fake_transport.h"

namespace prefixd {

inline constexpr uint64_t kMaxMessageBytes = uint64_t{4} << 20;
inline constexpr size_t kPieceItems = kMaxReplyPayloadBytes / sizeof(int32_t);

// Specs. The type is i32 unless the test names another.
inline ScanSpec ScanOf(ScanSpec scan = {}, DType dtype = DType::kI32) {
  scan.dtype = dtype;
  return scan;
}
inline ReduceSpec ReduceOf(ReduceSpec reduce = {}, DType dtype = DType::kI32) {
  reduce.dtype = dtype;
  return reduce;
}
inline CompactSpec CompactOf(CompactSpec compact, DType dtype = DType::kI32) {
  compact.dtype = dtype;
  return compact;
}
inline CallInfo Unary() { return {.method = "Unary", .caller = {.name = "test", .connection = "test:1"}}; }
inline CallInfo Stream() {
  return {.method = "Stream", .caller = {.name = "test", .connection = "test:1"}, .shape = CallShape::kStream};
}

inline std::vector<int32_t> Iota(size_t n) {
  std::vector<int32_t> items(n);
  std::iota(items.begin(), items.end(), 1);
  return items;
}

inline std::vector<int32_t> InclusiveSum(const std::vector<int32_t>& in) {
  std::vector<int32_t> out;
  uint32_t sum = 0;
  for (const int32_t x : in) out.push_back(static_cast<int32_t>(sum += static_cast<uint32_t>(x)));
  return out;
}

class SessionTest : public testing::Test {
 protected:
  void MakeServer(int num_lanes, uint64_t max_requests = 64, uint64_t max_bytes = uint64_t{1} << 30,
                  uint64_t share_percent = 100) {
    lanes_.reset();
    admission_ = std::make_unique<Admission>(Admission::Limits{.requests = max_requests,
                                                               .bytes = max_bytes,
                                                               .bytes_per_request = Call::kBytes,
                                                               .share_percent = share_percent});
    lanes_ = *LanePool::Create(device_, num_lanes, kStagingBytes);
    batcher_ = std::make_unique<Batcher>(lanes_.get(), absl::ZeroDuration(), [](const absl::Status&) {});
    context_ = {.device = &device_,
                .lanes = lanes_.get(),
                .batcher = batcher_.get(),
                .admission = admission_.get(),
                .device_name = "fake",
                .max_message_bytes = kMaxMessageBytes,
                .record = [this](const CallRecord& record) { Log(record); },
                .on_device_lost = [this](const absl::Status&) { ++device_lost_; }};
  }
  SessionTest() { MakeServer(2); }
  ~SessionTest() override { lanes_.reset(); }

  // Runs a request to its end and returns its status. transport_ keeps the replies.
  absl::Status Run(CallInfo call, std::vector<Message> messages) {
    transport_ = std::make_unique<FakeTransport>(&context_, std::move(call), std::move(messages));
    if (!transport_->Run()) return absl::InternalError("the request did not end");
    return transport_->result().status;
  }
  std::string Reason(CallInfo call, std::vector<Message> messages) {
    return ErrorReason(Run(std::move(call), std::move(messages)));
  }

  void Log(const CallRecord& record) {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    log_.push_back(absl::StrCat(record.result.request_id, " ", record.call.method, " ", record.num_bytes_in, " ",
                                record.num_bytes_out, " ", static_cast<int>(record.result.status.code())));
  }

  FakeDevice device_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<LanePool> lanes_;
  ServerContext context_;
  std::atomic<int> device_lost_{0};
  std::mutex log_mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<FakeTransport> transport_;
};

inline std::vector<Message> Messages(const Spec& spec, std::vector<std::string> chunks) {
  std::vector<Message> messages;
  for (std::string& chunk : chunks) {
    messages.push_back(MakeMessage(messages.empty() ? std::optional<Spec>(spec) : std::nullopt, std::move(chunk)));
  }
  return messages;
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_SERVER_SESSION_FIXTURE_H_
