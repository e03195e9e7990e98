// Whole scans: what goes over the wire, and what comes back.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ClientScan, SmallArrayIsOneUnaryCall) {
  FakeServer server;
  v1::ScanRequest seen;
  server.prefix.scan = [&](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    seen = request;
    response->mutable_values()->mutable_inline_()->set_data(Data<float>({10, 13, 14}));
    response->mutable_timing()->set_kernel_ns(0);
    v1::AlgorithmChoice* ran = response->mutable_timing()->mutable_algorithm();
    ran->set_strategy(v1::STRATEGY_CHAINED);
    ran->set_tile_scan(v1::TILE_SCAN_BLELLOCH);
    ran->set_items_per_thread(2);
    ran->set_padding(true);
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto result = client.Scan<float>({3, 1, 2},
                                         {.op = Op::kMax,
                                          .kind = ScanKind::kExclusive,
                                          .init = 10.f,
                                          .reverse = true,
                                          .algorithm = {Strategy::kThreePhase, TileScan::kBrentKung, 4, true}},
                                         {.request_id = "me-1"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->values, ElementsAre(10, 13, 14));
  EXPECT_EQ(result->timing.kernel_ns, 0);            // Measured as nothing,
  EXPECT_EQ(result->timing.queue_ns, std::nullopt);  // which is not the same as not measured.
  EXPECT_EQ(result->timing.algorithm, (Algorithm{Strategy::kChained, TileScan::kBlelloch, 2, true}));
  EXPECT_EQ(seen.request_id(), "me-1");
  EXPECT_EQ(seen.spec().dtype(), v1::DTYPE_F32);
  EXPECT_EQ(seen.spec().op(), v1::OP_MAX);
  EXPECT_EQ(seen.spec().kind(), v1::SCAN_KIND_EXCLUSIVE);
  EXPECT_EQ(seen.spec().init().double_value(), 10);
  EXPECT_TRUE(seen.spec().reverse());
  EXPECT_EQ(seen.spec().algorithm().strategy(), v1::STRATEGY_THREE_PHASE);
  EXPECT_EQ(seen.spec().algorithm().tile_scan(), v1::TILE_SCAN_BRENT_KUNG);
  EXPECT_EQ(seen.spec().algorithm().items_per_thread(), 4u);
  EXPECT_TRUE(seen.spec().algorithm().padding());
  EXPECT_EQ(seen.spec().num_items(), 3);
  EXPECT_EQ(seen.values().inline_().data(), Data<float>({3, 1, 2}));
}

TEST(ClientScan, OneMebibyteIsUnaryAndOneElementMoreAStream) {
  FakeServer server;
  int unary = 0;
  int streams = 0;
  server.prefix.scan = [&](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    ++unary;
    *response->mutable_values()->mutable_inline_() = request.values().inline_();
    return grpc::Status::OK;
  };
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    ++streams;
    return SumScan(rpc);
  };
  Client client(server.address());
  std::vector<int64_t> values(kUnaryItems, 0);
  ASSERT_TRUE(client.Scan<int64_t>(values).ok());
  EXPECT_EQ(unary, 1);
  EXPECT_EQ(streams, 0);
  values.push_back(0);
  ASSERT_TRUE(client.Scan<int64_t>(values).ok());
  EXPECT_EQ(unary, 1);
  EXPECT_EQ(streams, 1);
}

// A server that does not know of carries would scan a part as if nothing stood before it.
TEST(ClientScan, ACarryThatDoesNotComeIsAnError) {
  FakeServer server;
  server.prefix.scan = [&](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    EXPECT_TRUE(request.return_carry());
    *response->mutable_values()->mutable_inline_() = request.values().inline_();
    return grpc::Status::OK;
  };
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  for (const size_t count : {size_t{3}, kUnaryItems + 1}) {
    const absl::Status status = client.Scan<int64_t>(std::vector<int64_t>(count), {.return_carry = true}).status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_NE(status.message().find("carry"), std::string::npos) << status;
  }
}

// u8 in, u64 out, as a server of the contract: both messages are at most 1 MiB.
TEST(ClientScan, WiderOutputStreamsSooner) {
  FakeServer server;
  int unary = 0;
  const auto widen = [](const std::string& data) {
    EXPECT_LE(data.size(), kMaxPayloadBytes / sizeof(uint64_t));
    std::vector<uint64_t> values;
    for (const char x : data) values.push_back(static_cast<uint8_t>(x) + 1000);
    return Data(values);
  };
  server.prefix.scan = [&](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    ++unary;
    EXPECT_EQ(request.spec().dtype(), v1::DTYPE_U8);
    EXPECT_EQ(request.spec().out_dtype(), v1::DTYPE_U64);
    EXPECT_EQ(request.spec().init().uint64_value(), uint64_t{1} << 40);
    response->mutable_values()->mutable_inline_()->set_data(widen(request.values().inline_().data()));
    return grpc::Status::OK;
  };
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) {
    v1::ScanRequest request;
    v1::ScanResponse response;
    while (rpc->Read(&request)) {
      response.mutable_values()->mutable_inline_()->set_data(widen(request.values().inline_().data()));
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  Client client(server.address());
  std::vector<uint8_t> values(kUnaryItems, 255);
  const auto small = client.Scan<uint8_t, uint64_t>(values, {.init = uint64_t{1} << 40});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->values, std::vector<uint64_t>(values.size(), 1255));
  EXPECT_EQ(unary, 1);
  values.push_back(7);
  const auto large = client.Scan<uint8_t, uint64_t>(values);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->values.size(), values.size());
  EXPECT_EQ(large->values.back(), 1007);
  EXPECT_EQ(unary, 1);
}

TEST(ClientScan, LargeArraysStreamInOrder) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  for (size_t extra : {size_t{1}, kUnaryItems - 1, kUnaryItems, 3 * kUnaryItems + seed % 1000}) {
    const std::vector<int64_t> values = RandomInts(kUnaryItems + extra, seed + extra);
    const auto result = client.Scan<int64_t>(values);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->values == PrefixSums(values)) << extra;
    EXPECT_EQ(result->timing.num_items, values.size());
  }
}

// The server answers each chunk before it reads the next, so neither side can go on if this side only writes: 64 MiB
// are far more than all buffers between them.
TEST(ClientScan, ReadsRepliesWhileItWrites) {
  FakeServer server;
  server.prefix.stream_scan = [&](auto*, ScanRpc* rpc) { return SumScan(rpc); };
  Client client(server.address());
  const std::vector<int64_t> values(64 * kUnaryItems, 1);
  const auto result = client.Scan<int64_t>(values, {}, {.timeout = absl::Seconds(60)});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->values.back(), static_cast<int64_t>(values.size()));
}

TEST(ClientScan, EmptyArrayStillAsksTheServer) {
  FakeServer server;
  server.prefix.scan = [&](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    EXPECT_TRUE(request.has_spec());
    response->mutable_timing()->set_device("here");
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto result = client.Scan<int32_t>({});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->values, IsEmpty());
  EXPECT_EQ(result->timing.device, "here");
}

}  // namespace
}  // namespace prefixd::client
