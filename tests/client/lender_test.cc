// When a call has ended, its memory is the caller's again. ASan reports anyone else who still reads it.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/array_call.h"
#include "client/client.h"
#include "tests/client/fake_server.h"
#include "tests/client/raw_server.h"
#include "tests/client/relay.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

TEST(Lender, WaitsForWhatItLent) {
  auto values = std::make_unique<std::vector<int64_t>>(RandomInts(kUnaryItems, 1));
  v1::ScanRequest expected;
  expected.mutable_values()->mutable_inline_()->set_data(Data(*values));
  std::atomic<bool> given_back = false;
  std::thread grpc;
  {
    const std::vector<std::string> nobody = {"127.0.0.1:1"};
    const Connection connection(nobody, {});
    const Lender lender(connection);
    grpc = std::thread([&, message = MakeRequest(v1::ScanRequest(), ScanSpec{}, {AsBytes<int64_t>(*values)},
                                                 std::nullopt, lender)]() mutable {
      absl::SleepFor(absl::Milliseconds(200));  // In which the lender must not be gone.
      EXPECT_TRUE(ToString(message) == expected.SerializeAsString());
      given_back = true;
      message.Clear();
    });
  }
  values.reset();
  EXPECT_TRUE(given_back);
  grpc.join();
}

TEST(Lender, ThatCopiesWaitsForNothing) {
  auto values = std::make_unique<std::vector<int64_t>>(kUnaryItems, 1);
  const std::string data = Data(*values);
  Payload payload;
  {
    const Lender lender;
    payload = lender.Lend(AsBytes<int64_t>(*values));
  }
  values.reset();
  EXPECT_TRUE(payload.ToString() == data);
}

// Nobody waits, and nothing is copied: gRPC keeps the owner of a chunk that has one.
TEST(Lender, AChunkWithAnOwnerIsSentFromWhereItIs) {
  auto values = std::make_shared<std::vector<int64_t>>(kUnaryItems, 1);
  const std::weak_ptr<std::vector<int64_t>> alive = values;
  const void* const data = values->data();
  grpc::ByteBuffer message;
  {
    const Lender lender;
    message = MakeRequest(v1::ScanRequest(), ScanSpec{}, {.values = AsBytes<int64_t>(*values), .owner = values},
                          std::nullopt, lender);
    values.reset();
  }
  EXPECT_FALSE(alive.expired());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(message.Dump(&slices).ok());
  EXPECT_EQ(static_cast<const void*>(slices.back().begin()), data);
  slices.clear();
  message.Clear();
  EXPECT_TRUE(alive.expired());
}

// However a call ends while most of its array is still on this side, and the connection stuck for a while.
enum class End { kTimeout, kCancellation, kRefusal, kLostConnection };

class CallEnd : public testing::TestWithParam<End> {};

TEST_P(CallEnd, GivesTheMemoryBack) {
  FakeServer server(0, 16 << 20);
  Relay relay(server.port());
  Client client(relay.address(), {.retry_window = absl::ZeroDuration()});
  server.prefix.scan = [](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    *response->mutable_values()->mutable_inline_() = request.values().inline_();
    return grpc::Status::OK;
  };
  std::atomic<bool> stuck = false;
  std::atomic<bool> ended = false;
  server.prefix.stream_scan = [&](auto* context, ScanRpc*) {
    relay.Hold();
    absl::SleepFor(absl::Milliseconds(100));  // For the client to send what it can.
    stuck = true;
    if (GetParam() == End::kRefusal) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no");
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    return grpc::Status::OK;
  };
  Cancellation cancellation;
  std::thread world([&] {
    while (!stuck && !ended) absl::SleepFor(absl::Milliseconds(1));  // A short timeout may pass before it is stuck.
    absl::SleepFor(absl::Milliseconds(100));                         // For the call to wait.
    if (GetParam() == End::kCancellation) cancellation.Cancel();
    absl::SleepFor(absl::Milliseconds(400));  // In which it must not return.
    if (GetParam() == End::kLostConnection) relay.Break();
    relay.Release();
  });
  auto values = std::make_unique<std::vector<int64_t>>(RandomInts(16 * kUnaryItems, 1));
  CallOptions call;
  if (GetParam() == End::kTimeout) call.timeout = absl::Milliseconds(400);
  if (GetParam() == End::kCancellation) call.cancellation = &cancellation;
  const absl::Status status = client.Scan<int64_t>(*values, {}, call).status();
  ended = true;
  values.reset();
  world.join();
  switch (GetParam()) {
    case End::kTimeout:
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      break;
    case End::kCancellation:
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      break;
    case End::kRefusal:
      EXPECT_EQ(status.message(), "no") << status;
      break;
    case End::kLostConnection:
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      return;
  }
  // Once this is answered, the connection has sent all that it held.
  const std::vector<int64_t> small = {1, 2, 3};
  const auto next = client.Scan<int64_t>(small, {}, {.timeout = absl::Seconds(30)});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->values, small);
}

INSTANTIATE_TEST_SUITE_P(Client, CallEnd,
                         testing::Values(End::kTimeout, End::kCancellation, End::kRefusal, End::kLostConnection));

TEST(ScanStream, ChunkIsTheCallersWhenWriteReturns) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI64});
  std::vector<int64_t> sums;
  std::thread writer([&] {
    for (int i = 0; i < 8; ++i) {
      auto values = std::make_unique<std::vector<int64_t>>(kUnaryItems, 1);
      EXPECT_TRUE((*stream)->Write({AsBytes<int64_t>(*values)}).ok());
      std::fill(values->begin(), values->end(), -1);
    }
    (*stream)->WritesDone();
  });
  for (ScanReply reply; (*stream)->Read(&reply);) {
    const auto more = Elements<int64_t>(reply.values);
    sums.insert(sums.end(), more.begin(), more.end());
  }
  writer.join();
  EXPECT_TRUE((*stream)->Finish().ok());
  EXPECT_EQ(sums, PrefixSums(std::vector<int64_t>(8 * kUnaryItems, 1)));
}

}  // namespace
}  // namespace prefixd::client
