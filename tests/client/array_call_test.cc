// The bytes of requests and replies: a client sends the bytes that protobuf would send, and takes any bytes in reply.
#include "client/array_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "client/client.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_compact.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "tests/client/fake_server.h"
#include "tests/client/raw_server.h"
#include "tests/client/sum_scan.h"
#include "tests/proto/differential.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::StartsWith;

// ---- Requests ------------------------------------------------------------------------------------------------------
template <class Array>
void SetInline(std::string data, std::optional<uint64_t> first_item, Array* array) {
  array->mutable_inline_()->set_data(std::move(data));
  if (first_item) array->mutable_inline_()->set_first_item(*first_item);
}

TEST(Requests, OfUnaryCallsAreProtobufs) {
  RawServer server;
  Client client(server.address());
  const CallOptions call = {.request_id = "me-1"};
  // From one below what a message has in its own slice, to one that fills it.
  for (const size_t count : {size_t{0}, size_t{3}, size_t{50000}}) {
    const std::vector<int64_t> values = RandomInts(count, count);
    const std::vector<uint8_t> mask(count, 1);

    client.Scan<int64_t>(values, {.op = Op::kMax, .init = -7}, call).IgnoreError();
    v1::ScanRequest scan;
    *scan.mutable_spec() =
        *ToWire(ScanSpec{.dtype = DType::kI64, .op = Op::kMax, .init = Value::Of(int64_t{-7}), .num_items = count});
    scan.set_request_id("me-1");
    SetInline(Data(values), std::nullopt, scan.mutable_values());
    ASSERT_THAT(server.requests, SizeIs(1));
    EXPECT_TRUE(server.requests[0] == scan.SerializeAsString()) << count;

    client.Reduce<int64_t>(values, {}, call).IgnoreError();
    v1::ReduceRequest reduce;
    *reduce.mutable_spec() = *ToWire(ReduceSpec{.dtype = DType::kI64, .num_items = count});
    reduce.set_request_id("me-1");
    SetInline(Data(values), std::nullopt, reduce.mutable_values());
    EXPECT_TRUE(server.requests[0] == reduce.SerializeAsString()) << count;

    client.Compact<int64_t>(values, Where<int64_t>{Comparison::kLess, 5}, {.return_indices = true}).IgnoreError();
    v1::CompactRequest compact;
    *compact.mutable_spec() = *ToWire(CompactSpec{.dtype = DType::kI64,
                                                  .predicate = Predicate{Comparison::kLess, Value::Of(int64_t{5})},
                                                  .return_indices = true,
                                                  .num_items = count});
    SetInline(Data(values), std::nullopt, compact.mutable_values());
    EXPECT_TRUE(server.requests[0] == compact.SerializeAsString()) << count;

    client.Compact<int64_t>(values, mask, {.invert = true}, call).IgnoreError();
    compact.Clear();
    *compact.mutable_spec() = *ToWire(CompactSpec{.dtype = DType::kI64, .invert = true, .num_items = count});
    compact.set_request_id("me-1");
    SetInline(Data(values), std::nullopt, compact.mutable_values());
    SetInline({mask.begin(), mask.end()}, std::nullopt, compact.mutable_mask());
    EXPECT_TRUE(server.requests[0] == compact.SerializeAsString()) << count;
  }
}

// The spec and the id in the first message only, the position in each, the end in the last.
template <class Request, class Spec>
void ExpectStreamed(const std::vector<std::string>& sent, const Spec& spec, const std::vector<int64_t>& values,
                    const std::vector<uint8_t>& mask) {
  const size_t chunk_items = ChunkItems(spec);
  ASSERT_THAT(sent, SizeIs((values.size() + chunk_items - 1) / chunk_items));
  for (size_t i = 0; i < sent.size(); ++i) {
    const size_t first = i * chunk_items;
    const size_t end = std::min(first + chunk_items, values.size());
    Request expected;
    if (i == 0) {
      *expected.mutable_spec() = *ToWire(spec);
      expected.set_request_id("me-2");
      expected.set_announces_end(true);
    }
    expected.set_end(i + 1 == sent.size());
    SetInline(Data(std::vector<int64_t>(values.begin() + first, values.begin() + end)), first,
              expected.mutable_values());
    if constexpr (std::is_same_v<Request, v1::CompactRequest>) {
      if (!mask.empty()) SetInline({mask.begin() + first, mask.begin() + end}, first, expected.mutable_mask());
    }
    EXPECT_TRUE(sent[i] == expected.SerializeAsString()) << i;
  }
}

TEST(Requests, OfStreamsAreProtobufs) {
  RawServer server;
  Client client(server.address());
  const std::vector<int64_t> values = RandomInts(2 * kUnaryItems + 5, 1);
  const std::vector<uint8_t> mask(values.size(), 1);
  // With a Cancellation chunks are copied, without one they are not.
  Cancellation cancellation;
  for (Cancellation* const maybe : {&cancellation, static_cast<Cancellation*>(nullptr)}) {
    const CallOptions call = {.cancellation = maybe, .request_id = "me-2"};
    client.Scan<int64_t>(values, {}, call).IgnoreError();
    ExpectStreamed<v1::ScanRequest>(server.requests, ScanSpec{.dtype = DType::kI64, .num_items = values.size()}, values,
                                    {});
    client.Reduce<int64_t>(values, {}, call).IgnoreError();
    ExpectStreamed<v1::ReduceRequest>(server.requests, ReduceSpec{.dtype = DType::kI64, .num_items = values.size()},
                                      values, {});
    client.Compact<int64_t>(values, Where<int64_t>{Comparison::kLess, 5}, {}, call).IgnoreError();
    ExpectStreamed<v1::CompactRequest>(server.requests,
                                       CompactSpec{.dtype = DType::kI64,
                                                   .predicate = Predicate{Comparison::kLess, Value::Of(int64_t{5})},
                                                   .num_items = values.size()},
                                       values, {});
    client.Compact<int64_t>(values, mask, {}, call).IgnoreError();
    ExpectStreamed<v1::CompactRequest>(server.requests, CompactSpec{.dtype = DType::kI64, .num_items = values.size()},
                                       values, mask);
  }
}

TEST(Requests, OfAnEmptyStreamAreItsSpec) {
  RawServer server;
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI64}, {.request_id = "me-3"});
  (*stream)->WritesDone();
  for (ScanReply reply; (*stream)->Read(&reply);) continue;
  v1::ScanRequest expected;
  *expected.mutable_spec() = *ToWire(ScanSpec{.dtype = DType::kI64});
  expected.set_request_id("me-3");
  expected.set_announces_end(true);
  expected.set_end(true);
  SetInline("", 0, expected.mutable_values());
  EXPECT_THAT(server.requests, ElementsAre(expected.SerializeAsString()));
}

// ---- Replies -------------------------------------------------------------------------------------------------------
v1::ScanResponse ScanResponseOf(const std::vector<int64_t>& values) {
  v1::ScanResponse response;
  SetInline(Data(values), std::nullopt, response.mutable_values());
  return response;
}

TEST(Replies, MayBeCutAnywhere) {
  const std::vector<int64_t> values = RandomInts(1000, 1);
  v1::CompactResponse response;
  response.set_count(7);
  SetInline(Data(values), std::nullopt, response.mutable_values());
  SetInline(Data(std::vector<int64_t>{1, 2, 3}), std::nullopt, response.mutable_indices());
  for (const std::vector<size_t>& sizes : std::vector<std::vector<size_t>>{{100000}, {1}, {3}, {7, 13}, {0, 5}}) {
    ArrayReply<v1::CompactResponse> reply;
    ASSERT_TRUE(ParseReply(InSlices(response.SerializeAsString(), sizes), &reply).ok());
    EXPECT_EQ(reply.message.count(), 7u);
    EXPECT_EQ(Elements<int64_t>(reply.values.ToString()), values);
    EXPECT_THAT(Elements<int64_t>(reply.indices.ToString()), ElementsAre(1, 2, 3));
    // The next one leaves nothing of it behind.
    ASSERT_TRUE(ParseReply(InSlices("\x10\x01", sizes), &reply).ok());
    EXPECT_EQ(reply.message.count(), 1u);
    EXPECT_TRUE(reply.values.empty() && reply.indices.empty());
  }
}

// gRPC cuts a message into frames of 16 KiB, whatever element is there.
TEST(Replies, OfManySlicesAreWholeElements) {
  RawServer server;
  Client client(server.address());
  const std::vector<int64_t> values = RandomInts(kUnaryItems, 1);
  server.replies = {ScanResponseOf(values).SerializeAsString()};
  const auto whole = client.Scan<int64_t>(values);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(whole->values == values);

  std::vector<int64_t> twice = values;
  twice.insert(twice.end(), values.begin(), values.end());
  server.replies.push_back(server.replies[0]);
  const auto streamed = client.Scan<int64_t>(twice);
  ASSERT_TRUE(streamed.ok()) << streamed.status();
  EXPECT_TRUE(streamed->values == twice);

  auto stream = client.OpenScan({.dtype = DType::kI64});
  (*stream)->WritesDone();
  ScanReply reply;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE((*stream)->Read(&reply));
    EXPECT_TRUE(Elements<int64_t>(reply.values) == values);
  }
  EXPECT_FALSE((*stream)->Read(&reply));
}

TEST(Replies, InEveryValidEncoding) {
  RawServer server;
  Client client(server.address());
  v1::ScanResponse timing;
  timing.mutable_timing()->set_launches(3);
  const std::string head = timing.SerializeAsString();
  const std::string values = ScanResponseOf({5, 6}).SerializeAsString();
  const std::string unknown = "\xf8\x0f\x01";  // Field 255, a varint.
  for (const std::string& bytes : {
           head + values,
           values + head,                                            // Another order.
           unknown + values + head,                                  // A field of a newer server.
           ScanResponseOf({1}).SerializeAsString() + values + head,  // The later one counts.
           values + v1::ScanResponse().SerializeAsString() + head,   // Nothing in between.
           values + std::string("\xa2\x06\x00", 3) + head,           // Merged with nothing.
       }) {
    server.replies = {bytes};
    const auto result = client.Scan<int64_t>({1, 2});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->values, ElementsAre(5, 6));
    EXPECT_EQ(result->timing.launches, 3u);
  }
}

TEST(Replies, ThatAreNoneAreAnInternalError) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  RawServer server;
  Client client(server.address());
  v1::CompactResponse good;
  good.mutable_timing()->set_launches(7);
  good.set_count(2);
  SetInline(Data(std::vector<int64_t>{5, 6}), std::nullopt, good.mutable_values());
  const std::string bytes = good.SerializeAsString();
  const std::vector<int64_t> small = {1, 2};
  const std::vector<int64_t> large(kUnaryItems + 1);
  const auto expect_internal = [&](const std::vector<int64_t>& values) {
    std::vector<absl::Status> statuses = {client.Scan<int64_t>(values).status(),
                                          client.Reduce<int64_t>(values).status()};
    // With less than this it may be a reply that keeps nothing.
    if (server.replies[0].size() > 4) {
      statuses.push_back(client.Compact<int64_t>(values, Where<int64_t>{Comparison::kLess, 5}).status());
    }
    for (const absl::Status& status : statuses) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal)
          << status << " for " << testing::PrintToString(server.replies[0]);
    }
  };
  for (size_t size = 1; size < bytes.size(); ++size) {
    server.replies = {bytes.substr(0, size)};
    expect_internal(small);
  }
  server.replies = {bytes.substr(0, bytes.size() - 1)};
  expect_internal(large);
  server.replies = {"no message at all"};
  expect_internal(small);
  expect_internal(large);
  EXPECT_THAT(std::string(client.Scan<int64_t>(small).status().message()),
              StartsWith("the server's reply: the message is no prefixd.v1.ScanResponse"));
  EXPECT_THAT(std::string(client.Reduce<int64_t>(large).status().message()),
              StartsWith("the server's reply: the message is no prefixd.v1.ReduceResponse"));
  for (int i = 0; i < 300; ++i) {  // Whatever it is: no crash.
    server.replies = {bytes};
    for (int flips = 1 + random() % 4; flips > 0; --flips)
      server.replies[0][random() % bytes.size()] ^= 1 << random() % 7;
    client.Scan<int64_t>(small).IgnoreError();
    client.Compact<int64_t>(small, Where<int64_t>{Comparison::kLess, 5}).IgnoreError();
  }
}

TEST(Replies, ThatAreNoneEndAStreamOfTheCallers) {
  RawServer server;
  server.replies = {ScanResponseOf({1}).SerializeAsString(), "\x07", ScanResponseOf({2}).SerializeAsString()};
  Client client(server.address());
  auto stream = client.OpenScan({.dtype = DType::kI64});
  (*stream)->WritesDone();
  ScanReply reply;
  EXPECT_TRUE((*stream)->Read(&reply));
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_FALSE((*stream)->Read(&reply));
  EXPECT_EQ((*stream)->Finish().code(), absl::StatusCode::kInternal);
  auto reduced = client.OpenReduce({.dtype = DType::kI64});
  (*reduced)->WritesDone();
  ReduceReply value;
  EXPECT_FALSE((*reduced)->Read(&value));
  EXPECT_EQ((*reduced)->Finish().code(), absl::StatusCode::kInternal);
}

// Two halves of an element add up, but to nothing that was asked for.
TEST(Replies, OfBrokenElementsAreAnInternalError) {
  RawServer server;
  v1::ScanResponse half;
  SetInline(std::string(4, 'x'), std::nullopt, half.mutable_values());
  server.replies = {half.SerializeAsString(), half.SerializeAsString()};
  Client client(server.address());
  std::vector<int64_t> values(kUnaryItems + 1);
  EXPECT_EQ(client.Scan<int64_t>(values).status().message(),
            "the server returned 4 bytes of values, no multiple of the 8 of an element");
  v1::CompactResponse kept;
  kept.set_count(1);
  SetInline(std::string(9, 'x'), std::nullopt, kept.mutable_values());
  server.replies = {kept.SerializeAsString()};
  EXPECT_EQ(client.Compact<int64_t>({1, 2}, Where<int64_t>{}).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace prefixd::client
