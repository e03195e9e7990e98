// Whole calls: what goes over the wire, and what comes back.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "client/memory_source.h"
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

TEST(ClientReduce, OfAnotherOutputType) {
  FakeServer server;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest& request, v1::ReduceResponse* response) {
    EXPECT_EQ(request.spec().dtype(), v1::DTYPE_F32);
    EXPECT_EQ(request.spec().out_dtype(), v1::DTYPE_F64);
    response->mutable_value()->set_double_value(0.1);
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto reduced = client.Reduce<float, double>({1, 2});
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_EQ(reduced->value, 0.1);  // Not rounded to f32 on the way.
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

TEST(ClientReduce, UnaryAndStream) {
  FakeServer server;
  server.prefix.reduce = [&](auto*, const v1::ReduceRequest& request, v1::ReduceResponse* response) {
    EXPECT_EQ(request.spec().op(), v1::OP_MIN);
    EXPECT_EQ(request.spec().init().uint64_value(), ~uint64_t{0});
    response->mutable_value()->set_uint64_value(1);
    response->set_count(3);
    response->set_index(2);
    return grpc::Status::OK;
  };
  server.prefix.stream_reduce = [&](auto*, grpc::ServerReader<v1::ReduceRequest>* reader,
                                    v1::ReduceResponse* response) {
    uint64_t sum = 0;
    uint64_t count = 0;
    for (v1::ReduceRequest request; reader->Read(&request);) {
      EXPECT_LE(request.values().inline_().data().size(), kMaxPayloadBytes);
      EXPECT_EQ(request.values().inline_().first_item(), count);
      for (uint64_t value : Elements<uint64_t>(request.values().inline_().data())) {
        sum += value;
        ++count;
      }
    }
    response->mutable_value()->set_uint64_value(sum);
    response->set_count(count);
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto small = client.Reduce<uint64_t>({7, 3, 1}, {.op = Op::kMin, .init = ~uint64_t{0}});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(small->value, 1);
  EXPECT_EQ(small->index, 2);
  std::vector<uint64_t> values(5 * kUnaryItems + 17);
  std::iota(values.begin(), values.end(), uint64_t{1} << 62);
  const auto large = client.Reduce<uint64_t>(values);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->value, std::accumulate(values.begin(), values.end(), uint64_t{0}));
  EXPECT_EQ(large->count, values.size());
  EXPECT_EQ(large->index, std::nullopt);
}

TEST(ClientCompact, PredicateOnTheWire) {
  FakeServer server;
  v1::CompactRequest seen;
  server.prefix.compact = [&](auto*, const v1::CompactRequest& request, v1::CompactResponse* response) {
    seen = request;
    response->set_count(2);
    response->mutable_values()->mutable_inline_()->set_data(Data<int32_t>({3, 4}));
    response->mutable_indices()->mutable_inline_()->set_data(Data<uint64_t>({0, 2}));
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto result = client.Compact<int32_t>({3, -5, 4}, Where<int32_t>{Comparison::kLessEqual, -2},
                                              {.invert = true, .return_indices = true});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->values, ElementsAre(3, 4));
  EXPECT_THAT(result->indices, ElementsAre(0, 2));
  EXPECT_EQ(seen.spec().predicate().comparison(), v1::COMPARISON_LESS_EQUAL);
  EXPECT_EQ(seen.spec().predicate().value().int64_value(), -2);
  EXPECT_TRUE(seen.spec().invert());
  EXPECT_TRUE(seen.spec().return_indices());
  EXPECT_FALSE(seen.has_mask());
}

// What a spec known at run time can say beyond the typed calls.
TEST(ClientCompact, IndicesOf32BitsWithoutValues) {
  FakeServer server;
  v1::CompactSpec seen;
  v1::CompactResponse response;
  server.prefix.compact = [&](auto*, const v1::CompactRequest& request, v1::CompactResponse* out) {
    seen = request.spec();
    *out = response;
    return grpc::Status::OK;
  };
  response.set_count(2);
  response.mutable_indices()->mutable_inline_()->set_data(Data<uint32_t>({0, 2}));
  response.mutable_timing()->set_num_items(3);
  Client client(server.address());
  CompactSpec spec = {.dtype = DType::kI64,
                      .predicate = Predicate{Comparison::kGreater, Value::Of(int64_t{0})},
                      .return_values = false,
                      .return_indices = true,
                      .index_dtype = DType::kU32};
  const std::vector<int64_t> values = {3, -5, 4};
  std::vector<uint32_t> indices;
  const auto compact = [&] {
    indices.clear();
    MemorySource source(AsBytes<int64_t>(values), sizeof(int64_t));
    return client.CompactChunks(spec, source, [&](Bytes kept, Bytes places) {
      EXPECT_TRUE(kept.empty());
      indices = Elements<uint32_t>({reinterpret_cast<const char*>(places.data()), places.size()});
      return absl::OkStatus();
    });
  };
  const auto timing = compact();
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_EQ(timing->num_items, 3u);
  EXPECT_THAT(indices, ElementsAre(0, 2));
  EXPECT_TRUE(seen.omit_values());
  EXPECT_EQ(seen.index_dtype(), v1::DTYPE_U32);

  // Indices of the wrong width, and values that nobody asked for.
  response.mutable_indices()->mutable_inline_()->set_data(Data<uint64_t>({0, 2}));
  EXPECT_EQ(compact().status().code(), absl::StatusCode::kInternal);
  response.mutable_indices()->mutable_inline_()->set_data(Data<uint32_t>({0, 2}));
  response.mutable_values()->mutable_inline_()->set_data(Data<int64_t>({3, 4}));
  EXPECT_EQ(compact().status().code(), absl::StatusCode::kInternal);

  // Neither: the count alone.
  spec.return_indices = false;
  response.clear_values();
  response.clear_indices();
  EXPECT_TRUE(compact().ok());
}

TEST(ClientCompact, ACountThatGoesDownIsAnInternalError) {
  FakeServer server;
  server.prefix.stream_compact = [](auto*, CompactRpc* rpc) {
    for (v1::CompactRequest request; rpc->Read(&request);) continue;
    for (const uint64_t count : {2, 1}) {
      v1::CompactResponse response;
      response.set_count(count);
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  Client client(server.address());
  const std::vector<int64_t> values(2 * kUnaryItems);
  MemorySource source(AsBytes<int64_t>(values), sizeof(int64_t));
  const CompactSpec spec = {.dtype = DType::kI64, .predicate = Predicate{}, .return_values = false};
  const auto ignore = [](Bytes, Bytes) { return absl::OkStatus(); };
  EXPECT_EQ(client.CompactChunks(spec, source, ignore).status().code(), absl::StatusCode::kInternal);
}

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
    const auto timing = client.RunChunks(spec, source, [&](Bytes kept, Bytes indices) {
      received_bytes += kept.size() + indices.size();
      return absl::OkStatus();
    });
    ASSERT_TRUE(timing.ok()) << timing.status();
    sizes.push_back(received_bytes);
    EXPECT_EQ(timing->num_items, sizes.size());
  }
  EXPECT_THAT(sizes, ElementsAre(24, 0, 8, 24));
}

// The stream brings a difference to each chunk; the typed call is one message, with the options in its spec.
TEST(ClientDifference, UnaryAndStream) {
  FakeServer server;
  v1::DifferenceSpec seen;
  server.prefix.difference = [&](auto*, const v1::DifferenceRequest& request, v1::DifferenceResponse* response) {
    seen = request.spec();
    response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({3, 1, 2, 4}));
    return grpc::Status::OK;
  };
  server.prefix.stream_difference = [](auto*, DifferenceRpc* rpc) {
    int64_t last = 0;
    for (v1::DifferenceRequest request; rpc->Read(&request);) {
      std::vector<int64_t> values = Elements<int64_t>(request.values().inline_().data());
      for (int64_t& value : values) value -= std::exchange(last, value);
      v1::DifferenceResponse response;
      response.mutable_values()->mutable_inline_()->set_data(Data(values));
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  Client client(server.address());
  const auto small = client.Difference<int64_t>({13, 14, 16, 20}, {.init = 10, .reverse = true});
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_THAT(small->values, ElementsAre(3, 1, 2, 4));
  EXPECT_EQ(seen.init().int64_value(), 10);
  EXPECT_TRUE(seen.reverse());
  EXPECT_EQ(seen.num_items(), 4u);

  std::vector<int64_t> values(2 * kUnaryItems + 5);
  std::iota(values.begin(), values.end(), 1);
  const auto large = client.Difference<int64_t>(values);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_TRUE(large->values == std::vector<int64_t>(values.size(), 1));
}

TEST(ClientCompact, StreamsMaskWithItsValues) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  FakeServer server;
  server.prefix.stream_compact = [&](auto*, CompactRpc* rpc) {
    uint64_t count = 0;
    uint64_t next_item = 0;
    for (v1::CompactRequest request; rpc->Read(&request);) {
      EXPECT_EQ(request.has_spec(), next_item == 0);
      const auto values = Elements<int64_t>(request.values().inline_().data());
      const std::string& mask = request.mask().inline_().data();
      EXPECT_EQ(mask.size(), values.size());
      // Request and worst-case reply fit a message.
      EXPECT_LE(values.size() * (sizeof(int64_t) + sizeof(uint64_t)), kMaxPayloadBytes);
      std::vector<int64_t> kept;
      std::vector<uint64_t> indices;
      for (size_t i = 0; i < values.size(); ++i) {
        if (mask[i] == 0) continue;
        kept.push_back(values[i]);
        indices.push_back(next_item + i);
      }
      next_item += values.size();
      v1::CompactResponse response;
      response.set_count(count += kept.size());
      response.mutable_values()->mutable_inline_()->set_data(Data(kept));
      response.mutable_indices()->mutable_inline_()->set_data(Data(indices));
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  Client client(server.address());
  const std::vector<int64_t> values = RandomInts(300000, seed);
  std::vector<uint8_t> mask(values.size());
  std::mt19937_64 random(seed);
  for (uint8_t& bit : mask) bit = random() % 3 == 0;
  std::vector<int64_t> expected;
  std::vector<uint64_t> expected_indices;
  for (size_t i = 0; i < values.size(); ++i) {
    if (mask[i] == 0) continue;
    expected.push_back(values[i]);
    expected_indices.push_back(i);
  }
  const auto result = client.Compact<int64_t>(values, mask, {.return_indices = true});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->values == expected);
  EXPECT_TRUE(result->indices == expected_indices);
}

// Bits restart in each chunk, so a chunk begins with a whole byte of the caller's mask.
TEST(ClientCompact, MaskOfBits) {
  FakeServer server;
  const auto select = [](const v1::CompactRequest& request, v1::CompactResponse* response) {
    const std::vector<int64_t> values = Elements<int64_t>(request.values().inline_().data());
    const std::string& mask = request.mask().inline_().data();
    EXPECT_EQ(mask.size(), (values.size() + 7) / 8);
    std::vector<int64_t> kept;
    for (size_t i = 0; i < values.size(); ++i) {
      if (mask[i / 8] >> i % 8 & 1) kept.push_back(values[i]);
    }
    response->mutable_values()->mutable_inline_()->set_data(Data(kept));
    response->set_count(response->count() + kept.size());
  };
  server.prefix.compact = [&](auto*, const v1::CompactRequest& request, v1::CompactResponse* response) {
    EXPECT_EQ(request.spec().mask(), v1::MASK_KIND_BITS);
    select(request, response);
    return grpc::Status::OK;
  };
  server.prefix.stream_compact = [&](auto*, CompactRpc* rpc) {
    v1::CompactResponse response;
    for (v1::CompactRequest request; rpc->Read(&request);) {
      select(request, &response);
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  Client client(server.address());
  for (const size_t count : {size_t{0}, size_t{3}, size_t{8}, 3 * kUnaryItems + 5}) {
    const std::vector<int64_t> values = RandomInts(count, 7);
    std::vector<uint8_t> mask((count + 7) / 8);
    std::mt19937_64 random(8);
    for (uint8_t& byte : mask) byte = random();
    std::vector<int64_t> kept;
    for (size_t i = 0; i < count; ++i) {
      if (mask[i / 8] >> i % 8 & 1) kept.push_back(values[i]);
    }
    const auto result = client.Compact<int64_t>(values, mask, {.mask_kind = MaskKind::kBits});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->values == kept) << count;
  }
  const auto wrong = client.Compact<int64_t>({1, 2}, std::vector<uint8_t>(2), {.mask_kind = MaskKind::kBits});
  EXPECT_EQ(ErrorReason(wrong.status()), "MASK_LENGTH");
}

TEST(ClientCompact, MaskOfAnotherLengthIsRefusedHere) {
  Client client("127.0.0.1:1");  // Where nobody is: the answer must not need one.
  const auto result = client.Compact<float>({1, 2, 3}, std::vector<uint8_t>{1, 0});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorReason(result.status()), "MASK_LENGTH");
  EXPECT_EQ(ErrorField(result.status()), "mask.inline.data");
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
