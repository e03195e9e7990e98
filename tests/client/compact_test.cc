// Whole compacts: what goes over the wire, and what comes back.
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "client/memory_source.h"
#include "tests/client/fake_server.h"
#include "tests/client/sum_scan.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;

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
  EXPECT_FALSE(seen.spec().predicate().has_end());
  ASSERT_TRUE(
      client.Compact<int32_t>({3, -5, 4}, Where<int32_t>{Comparison::kInRange, 3, 5}, {.return_indices = true}).ok());
  EXPECT_EQ(seen.spec().predicate().comparison(), v1::COMPARISON_IN_RANGE);
  EXPECT_EQ(seen.spec().predicate().value().int64_value(), 3);
  EXPECT_EQ(seen.spec().predicate().end().int64_value(), 5);
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

}  // namespace
}  // namespace prefixd::client
