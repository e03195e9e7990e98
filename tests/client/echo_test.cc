// Client::Echo, and clients with a connection of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/client.h"
#include "tests/client/fake_server.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Bytes of an array in memory.
class BytesSource final : public ChunkSource {
 public:
  explicit BytesSource(Bytes bytes) : rest_(bytes) {}
  absl::StatusOr<Chunk> Next(size_t max_items) override {
    const Bytes next = rest_.first(std::min(max_items, rest_.size()));
    rest_.remove_prefix(next.size());
    return Chunk{.values = next, .last = rest_.empty()};
  }
  bool Rewind() override { return false; }

 private:
  Bytes rest_;
};

class EchoTest : public testing::Test {
 protected:
  absl::Status Echo(size_t num_bytes, const CallOptions& call = {}) {
    const std::string data(num_bytes, 'x');
    BytesSource source(AsBytes(data));
    return Client(server_.address()).Echo(source, call);
  }
  FakeServer server_;
};

TEST_F(EchoTest, IsUnaryWhereOneMessageDoes) {
  server_.diagnostics.sizes = {77};
  for (const size_t num_bytes : {size_t{0}, size_t{1}, kMaxPayloadBytes}) {
    EXPECT_EQ(Echo(num_bytes), absl::OkStatus()) << num_bytes;
  }
  EXPECT_THAT(server_.diagnostics.sizes, ElementsAre(77));  // No stream came.
}

TEST_F(EchoTest, StreamsMessagesOfOneMiB) {
  EXPECT_EQ(Echo(2 * kMaxPayloadBytes + 5), absl::OkStatus());
  EXPECT_THAT(server_.diagnostics.sizes, ElementsAre(kMaxPayloadBytes, kMaxPayloadBytes, 5));
}

TEST_F(EchoTest, WhatGotLostIsNoticed) {
  server_.diagnostics.lost_bytes = 1;
  EXPECT_THAT(std::string(Echo(10).message()), HasSubstr("sent 9 of 10 bytes back"));
  EXPECT_EQ(Echo(2 * kMaxPayloadBytes).code(), absl::StatusCode::kInternal);
}

TEST_F(EchoTest, TellsTheServersErrorAndDoesNotTryAgain) {
  server_.diagnostics.status = DetailedError(grpc::StatusCode::UNAVAILABLE, "DRAINING", "no more");
  for (const size_t num_bytes : {size_t{10}, 3 * kMaxPayloadBytes}) {
    const absl::Status status = Echo(num_bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << num_bytes;
    EXPECT_EQ(ErrorReason(status), "DRAINING") << num_bytes;
  }
}

TEST_F(EchoTest, IsCancelled) {
  Cancellation cancellation;
  cancellation.Cancel();
  EXPECT_EQ(Echo(10, {.cancellation = &cancellation}).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Echo(3 * kMaxPayloadBytes, {.cancellation = &cancellation}).code(), absl::StatusCode::kCancelled);
}

class BrokenSource : public ChunkSource {
 public:
  absl::StatusOr<Chunk> Next(size_t max_items) override {
    if (data_.size() == max_items) return absl::DataLossError("the disk is gone");
    data_.resize(max_items);
    return Chunk{AsBytes(data_)};
  }
  bool Rewind() override { return false; }

 private:
  std::string data_;
};

TEST_F(EchoTest, ASourcesErrorIsTheCalls) {
  BrokenSource source;
  EXPECT_EQ(Client(server_.address()).Echo(source).code(), absl::StatusCode::kDataLoss);
}

TEST_F(EchoTest, ClientsShareAConnectionUnlessTheyAskForTheirOwn) {
  std::set<std::string> peers;
  server_.prefix.reduce = [&](grpc::ServerContext* context, const v1::ReduceRequest&, v1::ReduceResponse* response) {
    peers.insert(context->peer());
    response->mutable_value()->set_double_value(0);
    return grpc::Status::OK;
  };
  const std::vector<float> values = {1};
  Client first(server_.address());
  Client second(server_.address());
  for (Client* client : {&first, &second}) {
    ASSERT_EQ(client->Reduce<float>(values).status(), absl::OkStatus());
  }
  EXPECT_EQ(peers.size(), 1);
  Client one(server_.address(), {.own_connection = true});
  Client other(server_.address(), {.own_connection = true});
  ASSERT_EQ(one.Reduce<float>(values).status(), absl::OkStatus());
  ASSERT_EQ(other.Reduce<float>(values).status(), absl::OkStatus());
  EXPECT_EQ(peers.size(), 3);
}

}  // namespace
}  // namespace prefixd::client
