// The streams that callers drive themselves.
#include "client/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;

Chunk ChunkOf(const std::vector<int32_t>& values) { return {AsBytes<int32_t>(values)}; }

// Each chunk comes back as it is.
grpc::Status EchoScan(ScanRpc* rpc) {
  for (v1::ScanRequest request; rpc->Read(&request);) {
    if (request.values().inline_().data().empty()) continue;  // The end.
    v1::ScanResponse response;
    *response.mutable_values()->mutable_inline_() = request.values().inline_();
    rpc->Write(response);
  }
  return grpc::Status::OK;
}

TEST(ScanStream, AnswersEachChunkBeforeTheNext) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return EchoScan(rpc); };
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI32});
  ASSERT_TRUE(stream.ok()) << stream.status();
  ScanReply reply;
  for (int32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE((*stream)->Write(ChunkOf({i, i + 1})).ok());
    ASSERT_TRUE((*stream)->Read(&reply));
    EXPECT_THAT(Elements<int32_t>(reply.values), ElementsAre(i, i + 1));
  }
  (*stream)->WritesDone();
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_TRUE((*stream)->Finish().ok());
}

TEST(ScanStream, WithoutChunksStillSendsTheSpec) {
  FakeServer server;
  int messages = 0;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    for (v1::ScanRequest request; rpc->Read(&request); ++messages) EXPECT_EQ(request.spec().dtype(), v1::DTYPE_I32);
    return grpc::Status::OK;
  };
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI32});
  (*stream)->WritesDone();
  ScanReply reply;
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_TRUE((*stream)->Finish().ok());
  EXPECT_EQ(messages, 1);
}

TEST(ScanStream, BrokenChunkIsRefusedAndTheStreamGoesOn) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return EchoScan(rpc); };
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI32});
  const std::vector<int32_t> values = {1, 2};
  const absl::Status status = (*stream)->Write({AsBytes<int32_t>(values).subspan(0, 7)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorReason(status), "LENGTH_NOT_MULTIPLE");
  EXPECT_TRUE((*stream)->Write(ChunkOf(values)).ok());
  (*stream)->WritesDone();
  ScanReply reply;
  ASSERT_TRUE((*stream)->Read(&reply));
  EXPECT_THAT(Elements<int32_t>(reply.values), ElementsAre(1, 2));
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_TRUE((*stream)->Finish().ok());
}

TEST(ScanStream, FinishSaysWhyAWriteFailed) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc*) {
    return DetailedError(grpc::StatusCode::FAILED_PRECONDITION, "REVERSE_ON_STREAM", "no");
  };
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI32, .reverse = true});
  absl::Status written;
  while (written.ok()) written = (*stream)->Write(ChunkOf({1}));
  EXPECT_EQ(written.code(), absl::StatusCode::kAborted);
  ScanReply reply;
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_EQ(ErrorReason((*stream)->Finish()), "REVERSE_ON_STREAM");
}

TEST(ScanStream, DestroyedBeforeFinishIsCancelled) {
  FakeServer server;
  std::atomic<bool> cancelled = false;
  server.prefix.stream_scan = [&](grpc::ServerContext* context, ScanRpc* rpc) {
    EchoScan(rpc);
    cancelled = context->IsCancelled();
    return grpc::Status::OK;
  };
  Client client(server.address());
  {
    auto stream = client.OpenScan({.dtype = DType::kI32});
    ASSERT_TRUE((*stream)->Write(ChunkOf({1})).ok());
    ScanReply reply;
    ASSERT_TRUE((*stream)->Read(&reply));
  }
  for (int i = 0; i < 5000 && !cancelled; ++i) absl::SleepFor(absl::Milliseconds(1));  // Until the next look.
  EXPECT_TRUE(cancelled);
}

TEST(ScanStream, CancelledByHandAndByOption) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return EchoScan(rpc); };
  Client client(server.address());
  for (const bool by_hand : {true, false}) {
    Cancellation cancellation;
    auto stream = client.OpenScan({.dtype = DType::kI32}, {.cancellation = &cancellation});
    std::thread stopper([&] {
      absl::SleepFor(absl::Milliseconds(50));  // For the stream to be in use.
      if (by_hand) {
        (*stream)->Cancel();
      } else {
        cancellation.Cancel();
      }
    });
    ScanReply reply;
    EXPECT_FALSE((*stream)->Read(&reply));  // Nothing was sent: without the end this would wait for ever.
    stopper.join();
    EXPECT_EQ((*stream)->Finish().code(), absl::StatusCode::kCancelled);
  }
}

TEST(ScanStream, NoServer) {
  Client client("127.0.0.1:1", {.retry_window = absl::Milliseconds(50)});
  auto stream = client.OpenScan({.dtype = DType::kI32});
  ASSERT_TRUE(stream.ok()) << stream.status();
  ScanReply reply;
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_EQ((*stream)->Finish().code(), absl::StatusCode::kUnavailable);
}

TEST(ScanStream, ValueOfATypeThisClientDoesNotKnow) {
  Client client("127.0.0.1:1");
  const auto stream = client.OpenCompact({.dtype = static_cast<DType>(kNumDTypes), .predicate = Predicate{}});
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CompactStream, ChecksTheMask) {
  FakeServer server;
  std::atomic<int> messages = 0;
  server.prefix.stream_compact = [&](auto*, CompactRpc* rpc) {
    for (v1::CompactRequest request; rpc->Read(&request);) ++messages;
    return grpc::Status::OK;
  };
  Client client(server.address());
  const std::vector<int32_t> values = {1, 2, 3};
  const std::string mask = "\x01\x01";
  auto masked = client.OpenCompact({.dtype = DType::kI32});
  EXPECT_EQ(ErrorReason((*masked)->Write({AsBytes<int32_t>(values), AsBytes(mask)})), "MASK_LENGTH");
  auto compared = client.OpenCompact({.dtype = DType::kI32, .predicate = Predicate{}});
  EXPECT_EQ(ErrorReason((*compared)->Write({AsBytes<int32_t>(values), AsBytes(mask)})), "FIELD_CONFLICT");
  EXPECT_EQ(messages, 0);
}

TEST(ReduceStream, ReturnsTheResultOrTheError) {
  FakeServer server;
  bool fail = false;
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader,
                                    v1::ReduceResponse* response) {
    uint64_t count = 0;
    for (v1::ReduceRequest request; reader->Read(&request);) count += request.values().inline_().data().size() / 4;
    if (fail) return DetailedError(grpc::StatusCode::INVALID_ARGUMENT, "COUNT_MISMATCH", "no");
    response->mutable_value()->set_int64_value(-7);
    response->set_count(count);
    return grpc::Status::OK;
  };
  Client client(server.address());
  auto good = client.OpenReduce({.dtype = DType::kI32});
  ASSERT_TRUE((*good)->Write(ChunkOf({1, 2})).ok());
  ASSERT_TRUE((*good)->Write(ChunkOf({3})).ok());
  (*good)->WritesDone();
  ReduceReply reply;
  ASSERT_TRUE((*good)->Read(&reply)) << (*good)->Finish();
  EXPECT_EQ(reply.value.As<int32_t>(), -7);
  EXPECT_EQ(reply.count, 3);
  EXPECT_FALSE((*good)->Read(&reply));
  EXPECT_TRUE((*good)->Finish().ok());
  fail = true;
  auto bad = client.OpenReduce({.dtype = DType::kI32});
  (*bad)->WritesDone();
  EXPECT_FALSE((*bad)->Read(&reply));
  EXPECT_EQ(ErrorReason((*bad)->Finish()), "COUNT_MISMATCH");
}

}  // namespace
}  // namespace prefixd::client
