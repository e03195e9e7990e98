// Calls of any primitive, and of many threads.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client/memory_source.h"
#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;

// Each primitive goes to its own method, and its arrays to the sink.
TEST(ClientRunChunks, ServesEveryPrimitive) {
  FakeServer server;
  server.prefix.scan = [](auto*, const v1::ScanRequest&, v1::ScanResponse* response) {
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({1, 3, 6}));
    response->mutable_timing()->set_num_items(1);
    return grpc::Status::OK;
  };
  server.prefix.reduce = [](auto*, const v1::ReduceRequest&, v1::ReduceResponse* response) {
    response->mutable_value()->set_int64_value(6);
    response->mutable_timing()->set_num_items(2);
    return grpc::Status::OK;
  };
  server.prefix.compact = [](auto*, const v1::CompactRequest&, v1::CompactResponse* response) {
    response->set_count(1);
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({3}));
    response->mutable_timing()->set_num_items(3);
    return grpc::Status::OK;
  };
  server.prefix.difference = [](auto*, const v1::DifferenceRequest&, v1::DifferenceResponse* response) {
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({1, 1, 1}));
    response->mutable_timing()->set_num_items(4);
    return grpc::Status::OK;
  };
  Client client(server.address());
  const std::vector<int64_t> values = {1, 2, 3};
  const std::vector<Spec> specs = {
      ScanSpec{.dtype = DType::kI64}, ReduceSpec{.dtype = DType::kI64},
      CompactSpec{.dtype = DType::kI64, .predicate = Predicate{Comparison::kGreater, Value::Of(int64_t{2})}},
      DifferenceSpec{.dtype = DType::kI64}};
  std::vector<size_t> sizes;
  for (const Spec& spec : specs) {
    size_t received_bytes = 0;
    MemorySource source(AsBytes<int64_t>(values), sizeof(int64_t));
    const auto timing = client.RunChunks(spec, source, [&](Pieces kept, Pieces indices) {
      received_bytes += NumBytes(kept) + NumBytes(indices);
      return absl::OkStatus();
    });
    ASSERT_TRUE(timing.ok()) << timing.status();
    sizes.push_back(received_bytes);
    EXPECT_EQ(timing->num_items, sizes.size());
  }
  EXPECT_THAT(sizes, ElementsAre(24, 0, 8, 24));
}

// The sink's pieces are the replies' own, cut where their messages were, and all of them in order.
TEST(ClientRunChunks, GivesTheSinkWhatCame) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  const std::vector<int64_t> values = RandomInts(3 * kUnaryItems, 1);
  MemorySource source(AsBytes<int64_t>(values), sizeof(int64_t));
  std::string received;
  size_t num_messages = 0;
  size_t num_pieces = 0;
  const auto timing = client.RunChunks(ScanSpec{.dtype = DType::kI64}, source, [&](Pieces values, Pieces) {
    for (const std::string_view piece : values) received.append(piece);
    EXPECT_EQ(received.size() % sizeof(int64_t), 0u);
    ++num_messages;
    num_pieces += values.size();
    return absl::OkStatus();
  });
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_TRUE(received == Data(PrefixSums(values)));
  EXPECT_GT(num_messages, 1u);
  EXPECT_GT(num_pieces, num_messages);
}

TEST(ClientRunChunks, EndsWithTheSinksError) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  const std::vector<int64_t> values = RandomInts(3 * kUnaryItems, 1);
  MemorySource source(AsBytes<int64_t>(values), sizeof(int64_t));
  int num_messages = 0;
  const auto timing = client.RunChunks(ScanSpec{.dtype = DType::kI64}, source, [&](Pieces, Pieces) {
    return ++num_messages == 2 ? absl::DataLossError("full") : absl::OkStatus();
  });
  EXPECT_EQ(timing.status(), absl::DataLossError("full"));
  EXPECT_EQ(num_messages, 2);
}

TEST(Client, ServesManyThreads) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::vector<int64_t> values = RandomInts(3 * kUnaryItems, i);
      const auto result = client.Scan<int64_t>(values);
      good += result.ok() && result->values == PrefixSums(values);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
}

}  // namespace
}  // namespace prefixd::client
