// Calls that end early: they are cancelled, their deadline passes, or a source, a sink or the server fails.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/client/fake_server.h"
#include "tests/client/silent_host.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

TEST(ClientCancellation, FromAnotherThread) {
  FakeServer server;
  absl::Notification unary_began;
  absl::Notification stream_began;
  const auto wait_for_the_end = [](grpc::ServerContext* context) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    return grpc::Status::OK;
  };
  server.prefix.scan = [&](auto* context, const v1::ScanRequest&, v1::ScanResponse*) {
    unary_began.Notify();
    return wait_for_the_end(context);
  };
  server.prefix.stream_scan = [&](auto* context, ScanRpc*) {
    stream_began.Notify();
    return wait_for_the_end(context);
  };
  Client client(server.address());
  const std::vector<int64_t> large(16 * kUnaryItems);
  for (const bool stream : {false, true}) {
    Cancellation cancellation;
    std::thread stopper([&] {
      (stream ? stream_began : unary_began).WaitForNotification();
      cancellation.Cancel();
    });
    const absl::Span<const int64_t> values(large.data(), stream ? large.size() : 1);
    const auto result = client.Scan<int64_t>(values, {}, {.timeout = absl::Seconds(60), .cancellation = &cancellation});
    stopper.join();
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled) << result.status();
    // It stays cancelled, for later calls too.
    EXPECT_EQ(client.Scan<int64_t>(values, {}, {.cancellation = &cancellation}).status().code(),
              absl::StatusCode::kCancelled);
  }
}

TEST(ClientCancellation, EndsThePauseBetweenAttempts) {
  FakeServer server;
  absl::Notification began;
  int calls = 0;
  server.prefix.scan = [&](auto*, const v1::ScanRequest&, v1::ScanResponse*) {
    ++calls;
    began.Notify();
    return kUnavailable;
  };
  Client client(server.address(),
                {.retry_window = absl::Hours(2), .initial_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)});
  Cancellation cancellation;
  std::thread stopper([&] {
    began.WaitForNotification();
    absl::SleepFor(absl::Milliseconds(100));  // For the pause to begin.
    cancellation.Cancel();
  });
  EXPECT_FALSE(client.Scan<int64_t>({1}, {}, {.cancellation = &cancellation}).ok());
  stopper.join();
  EXPECT_EQ(calls, 1);
}

// A clock's time would overflow.
TEST(ClientCancellation, EndsASleepOfAnyLength) {
  for (const absl::Duration long_time : {absl::Hours(3'000'000), absl::InfiniteDuration()}) {
    Cancellation cancellation;
    std::thread stopper([&] {
      absl::SleepFor(absl::Milliseconds(100));  // For the sleep to begin.
      cancellation.Cancel();
    });
    EXPECT_FALSE(cancellation.SleepUnlessCancelled(long_time)) << long_time;
    stopper.join();
  }
}

TEST(ClientDeadline, EndsCallsAndRetries) {
  FakeServer server;
  std::atomic<bool> server_was_called = false;
  std::atomic<bool> server_saw_the_end = false;
  server.prefix.scan = [&](auto* context, const v1::ScanRequest&, v1::ScanResponse*) {
    server_was_called = true;
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    server_saw_the_end = true;
    return grpc::Status::OK;
  };
  server.prefix.stream_scan = [&](auto* context, ScanRpc*) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
    return grpc::Status::OK;
  };
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest&, v1::ReduceResponse*) { return kUnavailable; };
  Client client(server.address(), FastRetries());
  CallOptions soon = {.timeout = absl::Milliseconds(100)};
  absl::Status late;
  for (; !server_was_called; soon.timeout *= 2) {  // A slow machine may need longer than that to get there.
    late = client.Scan<int64_t>({1}, {}, soon).status();
    EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(late.message(), "the server had not answered when the timeout passed");
  EXPECT_TRUE(IsCallStatus(late)) << late;
  late = client.Scan<int64_t>(std::vector<int64_t>(9 * kUnaryItems), {}, soon).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsCallStatus(late)) << late;
  const absl::Time start = absl::Now();
  EXPECT_FALSE(client.Reduce<int64_t>({1}, {}, soon).ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));                  // The retries alone would go on for twenty.
  while (!server_saw_the_end) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
}

TEST(ClientDeadline, IsTheOnlyEndWhereConnectingMayTakeForever) {
  const SilentHost silent;
  for (const absl::Duration forever : {absl::Hours(24 * 25), absl::InfiniteDuration()}) {
    Client client(silent.address(),
                  {.retry_window = absl::ZeroDuration(), .max_backoff = forever, .connect_timeout = forever});
    const absl::Status status = client.Reduce<int64_t>({1}, {}, {.timeout = absl::Seconds(1)}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << forever << ": " << status;
  }
}

// ---- Sources, sinks and servers that misbehave ---------------------------------------------------------------------
// Gives some chunks, then blocks until it is interrupted.
class BlockingSource : public ChunkSource {
 public:
  explicit BlockingSource(int good_chunks) : good_chunks_(good_chunks) {}
  absl::StatusOr<Chunk> Next(size_t max_items) override {
    if (good_chunks_-- > 0) {
      data_.resize(max_items * sizeof(int64_t));
      return Chunk{AsBytes(data_)};
    }
    blocks.Notify();
    interrupted_.WaitForNotification();
    return absl::CancelledError("interrupted");
  }
  bool Rewind() override { return false; }
  void Interrupt() override {
    if (!already_.exchange(true)) interrupted_.Notify();
  }
  absl::Notification blocks;

 private:
  int good_chunks_;
  std::string data_;
  std::atomic<bool> already_ = false;
  absl::Notification interrupted_;
};

const ScanSpec kScan = {.dtype = DType::kI64};
const ReduceSpec kReduce = {.dtype = DType::kI64};
const CompactSpec kCompact = {.dtype = DType::kI64, .predicate = Predicate{}};
absl::Status Ignore(Bytes) { return absl::OkStatus(); }
absl::Status IgnoreBoth(Bytes, Bytes) { return absl::OkStatus(); }

TEST(ClientChunks, FailedCallInterruptsABlockedSource) {
  FakeServer server;
  int calls = 0;
  BlockingSource source(1);
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    ++calls;
    v1::ScanRequest request;
    rpc->Read(&request);
    source.blocks.WaitForNotification();
    return kUnavailable;
  };
  BlockingSource reduce_source(1);
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>*, v1::ReduceResponse*) {
    reduce_source.blocks.WaitForNotification();
    return kUnavailable;
  };
  Client client(server.address(), FastRetries());
  const auto result = client.ScanChunks({.dtype = DType::kI64}, source, [](Bytes) { return absl::OkStatus(); });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
  EXPECT_EQ(result.status().message(), "not now");
  EXPECT_EQ(calls, 1);  // A source that can't rewind has one attempt.
  EXPECT_EQ(client.ReduceChunks(kReduce, reduce_source).status().message(), "not now");
}

// Whether the first chunk is awaited, when nothing has been sent, or a later one.
TEST(ClientChunks, CancellationAndTimeoutEndABlockedSource) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader, v1::ReduceResponse*) {
    for (v1::ReduceRequest request; reader->Read(&request);) continue;
    return grpc::Status::OK;
  };
  Client client(server.address());
  for (const int good_chunks : {0, 1}) {
    for (const bool cancel : {false, true}) {
      for (const bool reduce : {false, true}) {
        BlockingSource source(good_chunks);
        Cancellation cancellation;
        std::thread stopper([&] {
          if (!cancel) return;  // The timeout may pass before it blocks.
          source.blocks.WaitForNotification();
          cancellation.Cancel();
        });
        CallOptions call = {.cancellation = &cancellation};
        if (!cancel) call.timeout = absl::Milliseconds(300);
        const absl::Status status = reduce ? client.ReduceChunks(kReduce, source, call).status()
                                           : client.ScanChunks(kScan, source, Ignore, call).status();
        stopper.join();
        EXPECT_EQ(status.code(), cancel ? absl::StatusCode::kCancelled : absl::StatusCode::kDeadlineExceeded) << status;
      }
    }
  }
}

// An endless source, until it fails.
class FailingSource : public ChunkSource {
 public:
  explicit FailingSource(int good_chunks, absl::StatusCode code = absl::StatusCode::kUnavailable)
      : good_chunks_(good_chunks), code_(code) {}
  absl::StatusOr<Chunk> Next(size_t max_items) override {
    if (good_chunks_-- == 0) return absl::Status(code_, "the disk is gone");
    data_.resize(max_items * sizeof(int64_t));
    return Chunk{AsBytes(data_)};
  }
  bool Rewind() override {
    ++rewinds;
    return true;
  }
  int rewinds = 0;

 private:
  int good_chunks_;
  const absl::StatusCode code_;
  std::string data_;
};

TEST(ClientChunks, ErrorOfTheSourceEndsTheCall) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader,
                                    v1::ReduceResponse* response) {
    for (v1::ReduceRequest request; reader->Read(&request);) continue;
    response->mutable_value()->set_int64_value(1);
    return grpc::Status::OK;
  };
  server.prefix.stream_compact = [&](auto*, CompactRpc* rpc) {
    for (v1::CompactRequest request; rpc->Read(&request);) continue;
    return grpc::Status::OK;
  };
  Client client(server.address(), FastRetries());
  // ABORTED is also what a stream's Write returns, and UNAVAILABLE what is tried again.
  for (const auto code : {absl::StatusCode::kUnavailable, absl::StatusCode::kAborted, absl::StatusCode::kCancelled}) {
    for (const int good_chunks : {0, 1, 5}) {
      FailingSource scanned(good_chunks, code);
      FailingSource reduced(good_chunks, code);
      FailingSource compacted(good_chunks, code);
      const absl::Status error(code, "the disk is gone");
      EXPECT_EQ(client.ScanChunks(kScan, scanned, Ignore).status(), error);
      EXPECT_EQ(client.ReduceChunks(kReduce, reduced).status(), error);
      EXPECT_EQ(client.CompactChunks(kCompact, compacted, IgnoreBoth).status(), error);
      EXPECT_EQ(scanned.rewinds + reduced.rewinds + compacted.rewinds, 0);
    }
  }
}

TEST(ClientChunks, ServerThatEndsEarlyIsFoundOut) {
  FakeServer server;
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader,
                                    v1::ReduceResponse* response) {
    v1::ReduceRequest request;
    reader->Read(&request);
    response->mutable_value()->set_int64_value(1);
    return grpc::Status::OK;
  };
  Client client(server.address());
  FailingSource source(1000000);  // Never gets that far.
  EXPECT_EQ(client.ReduceChunks(kReduce, source).status().code(), absl::StatusCode::kInternal);
}

// Going back may cost a copy or a download, which a call that ends for good has no use for.
TEST(ClientChunks, SourceIsRewoundOnlyForAnotherAttempt) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc*) { return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no"); };
  Client client(server.address(), FastRetries());
  FailingSource source(1000000);
  EXPECT_EQ(client.ScanChunks(kScan, source, Ignore).status().message(), "no");
  EXPECT_EQ(source.rewinds, 0);
}

TEST(ClientChunks, ErrorOfTheSinkEndsTheCall) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address(), FastRetries());
  FailingSource source(1000000);  // Never gets that far.
  int calls = 0;
  const auto result = client.ScanChunks({.dtype = DType::kI64}, source, [&](Bytes) {
    ++calls;
    return absl::ResourceExhaustedError("the disk is full");
  });
  EXPECT_EQ(result.status().message(), "the disk is full");
  EXPECT_EQ(calls, 1);
}

TEST(ClientChunks, ServerThatLosesElementsIsFoundOut) {
  FakeServer server;
  server.prefix.scan = [&](auto*, const v1::ScanRequest&, v1::ScanResponse* response) {
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({1}));
    return grpc::Status::OK;
  };
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    for (v1::ScanRequest request; rpc->Read(&request);) continue;
    return grpc::Status::OK;
  };
  server.prefix.compact = [&](auto*, const v1::CompactRequest&, v1::CompactResponse* response) {
    response->set_count(2);
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({1}));
    return grpc::Status::OK;
  };
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest&, v1::ReduceResponse* response) {
    response->mutable_value()->set_double_value(1);
    return grpc::Status::OK;
  };
  Client client(server.address());
  EXPECT_EQ(client.Scan<int64_t>({1, 2}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(client.Scan<int64_t>(std::vector<int64_t>(2 * kUnaryItems)).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(client.Compact<int64_t>({1, 2}, {Comparison::kGreater, 0}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(client.Reduce<int64_t>({1, 2}).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace prefixd::client
