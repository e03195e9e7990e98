// Which calls are tried again, and which are not.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

TEST(ClientRetry, UnaryUntilTheServerIsAvailable) {
  FakeServer server;
  int calls = 0;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest& request, v1::ReduceResponse* response) {
    EXPECT_EQ(request.values().inline_().data(), Data<int32_t>({5}));
    if (++calls < 3) return kUnavailable;
    response->mutable_value()->set_int64_value(5);
    return grpc::Status::OK;
  };
  Client client(server.address(), FastRetries());
  const auto result = client.Reduce<int32_t>({5});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(calls, 3);
}

TEST(ClientRetry, NothingButUnavailable) {
  FakeServer server;
  int calls = 0;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest&, v1::ReduceResponse*) {
    ++calls;
    return DetailedError(grpc::StatusCode::RESOURCE_EXHAUSTED, "BYTE_BUDGET", "full", "", 1500);
  };
  Client client(server.address(), FastRetries());
  const absl::Status status = client.Reduce<int32_t>({5}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(1500));
  EXPECT_EQ(calls, 1);
}

TEST(ClientRetry, EndsWithTheWindow) {
  FakeServer server;
  std::atomic<int> calls = 0;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest&, v1::ReduceResponse*) {
    ++calls;
    return kUnavailable;
  };
  Client never(server.address(), {.retry_window = absl::ZeroDuration()});
  EXPECT_EQ(never.Reduce<int32_t>({5}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls, 1);
  ClientOptions options = {.retry_window = absl::Milliseconds(200), .initial_backoff = absl::Milliseconds(1)};
  do {  // On a machine that pauses, the first attempt may take all of the window.
    calls = 0;
    Client some(server.address(), options);
    EXPECT_EQ(some.Reduce<int32_t>({5}).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_LE(calls, 20);  // The pauses grow: there is no room for more.
    options.retry_window *= 2;
  } while (calls < 2);
}

TEST(ClientRetry, StreamBeforeItsFirstReplyFromTheBeginning) {
  FakeServer server;
  int calls = 0;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    if (++calls > 2) return SumScan(rpc);
    v1::ScanRequest request;
    for (int i = 0; i < calls; ++i) rpc->Read(&request);  // Some of it was already sent.
    return kUnavailable;
  };
  Client client(server.address(), FastRetries());
  const std::vector<int64_t> values = RandomInts(4 * kUnaryItems, 1);
  const auto result = client.Scan<int64_t>(values);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->values == PrefixSums(values));
  EXPECT_EQ(calls, 3);
}

TEST(ClientRetry, NoStreamAfterItsFirstReply) {
  FakeServer server;
  std::atomic<int> calls = 0;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    ++calls;
    AnswerOneMessage(rpc);
    return kUnavailable;
  };
  Client client(server.address(), FastRetries());
  const absl::Status status = client.Scan<int64_t>(std::vector<int64_t>(4 * kUnaryItems)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls, 1);
}

TEST(ClientRetry, ReduceStream) {
  FakeServer server;
  int calls = 0;
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader,
                                    v1::ReduceResponse* response) {
    if (++calls < 3) return kUnavailable;
    uint64_t bytes = 0;
    for (v1::ReduceRequest request; reader->Read(&request);) bytes += request.values().inline_().data().size();
    response->mutable_value()->set_int64_value(static_cast<int64_t>(bytes));
    return grpc::Status::OK;
  };
  Client client(server.address(), FastRetries());
  const auto result = client.Reduce<int64_t>(std::vector<int64_t>(4 * kUnaryItems));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->value, static_cast<int64_t>(4 * kMaxPayloadBytes));
  EXPECT_EQ(calls, 3);
}

TEST(ClientRetry, FindsAServerThatStartsLate) {
  const int port = FakeServer().port();  // Free again.
  Client client("127.0.0.1:" + std::to_string(port), FastRetries());
  std::unique_ptr<FakeServer> server;
  std::thread starter([&] {
    absl::SleepFor(absl::Milliseconds(300));  // For the first attempts to find nobody.
    server = std::make_unique<FakeServer>(port);
  });
  const auto health = client.CheckHealth();
  starter.join();
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_TRUE(*health);
}

}  // namespace
}  // namespace prefixd::client
