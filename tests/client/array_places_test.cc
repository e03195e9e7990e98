// Resident arrays: what calls by handle put into their requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/client/array_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// ---- Calls by handle -----------------------------------------------------------------------------------------------
TEST_F(ArrayTest, AScanByHandleNamesItsPlaces) {
  const Array array = Made(10);
  std::vector<v1::ScanRequest> requests;
  server_.prefix.scan = [&](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    requests.push_back(request);
    if (request.sink().has_new_array()) {
      response->mutable_values()->mutable_new_array()->set_name("arrays/made");
      response->mutable_values()->mutable_new_array()->set_dtype(v1::DTYPE_I64);
      response->mutable_values()->mutable_new_array()->set_num_items(3);
    } else if (request.sink().has_array()) {
      *response->mutable_values()->mutable_array() = request.sink().array();
      response->mutable_values()->mutable_array()->set_num_items(10);
    } else {
      response->mutable_values()->mutable_inline_()->set_data(Data<int64_t>({1, 3, 6}));
    }
    response->mutable_timing()->set_num_items(99);
    return grpc::Status::OK;
  };
  // To this side.
  const auto here = client_.Scan<int32_t, int64_t>(array.Part(2, 3), {.op = Op::kMax});
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_THAT(here->values, ElementsAre(1, 3, 6));
  EXPECT_EQ(here->timing.num_items, 99u);
  // To a new array.
  auto made = client_.ScanInto<int32_t, int64_t>(array.Part(2, 3), NewArray{{.ttl = absl::Seconds(5)}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->count, 3u);
  EXPECT_EQ(made->values.Release(), "arrays/made");
  // In place.
  const auto in_place = client_.ScanInto<int32_t>(array, array);
  ASSERT_TRUE(in_place.ok()) << in_place.status();
  EXPECT_EQ(in_place->count, 10u);
  EXPECT_FALSE(in_place->values.exists());

  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[0].values().array().name(), array.name());
  EXPECT_EQ(requests[0].values().array().first_item(), 2u);
  EXPECT_EQ(requests[0].values().array().num_items(), 3u);
  EXPECT_EQ(requests[0].spec().op(), v1::OP_MAX);
  EXPECT_EQ(requests[0].spec().out_dtype(), v1::DTYPE_I64);
  EXPECT_FALSE(requests[0].has_sink());
  EXPECT_EQ(requests[1].sink().new_array().lifetime().ttl().seconds(), 5);
  EXPECT_EQ(requests[2].sink().array().name(), array.name());
  EXPECT_EQ(requests[2].values().array().name(), array.name());
}

TEST_F(ArrayTest, AReduceByHandle) {
  const Array array = Made(10);
  server_.prefix.reduce = [&](auto*, const v1::ReduceRequest& request, v1::ReduceResponse* response) {
    EXPECT_EQ(request.values().array().name(), array.name());
    response->mutable_value()->set_int64_value(6);
    response->set_count(10);
    response->set_index(4);
    if (request.sink().has_new_array()) {
      response->mutable_values()->mutable_new_array()->set_name("arrays/made");
      response->mutable_values()->mutable_new_array()->set_dtype(v1::DTYPE_I32);
      response->mutable_values()->mutable_new_array()->set_num_items(1);
    } else if (request.sink().has_array()) {
      *response->mutable_values()->mutable_array() = request.sink().array();
    }
    return grpc::Status::OK;
  };
  const auto reduced = client_.Reduce<int32_t>(array, {.op = Op::kMax});
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_EQ(reduced->value, 6);
  EXPECT_EQ(reduced->count, 10u);
  EXPECT_EQ(reduced->index, 4u);
  auto made = client_.ReduceInto<int32_t>(array, NewArray{}, {.op = Op::kMax});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->value, 6);
  EXPECT_EQ(made->index, 4u);
  EXPECT_EQ(made->values.Release(), "arrays/made");
  const Array other = Made(10);
  EXPECT_FALSE(client_.ReduceInto<int32_t>(array, other.Part(3, 1))->values.exists());
  EXPECT_TRUE(absl::IsInternal(client_.ReduceInto<int32_t>(array, other.Part(3, 2)).status()));  // Two elements.
}

TEST_F(ArrayTest, ACompactByHandleHasTwoResultsAndAMask) {
  const Array array = Made(10);
  const Array mask = Made(10);
  v1::CompactRequest seen;
  server_.prefix.compact = [&](auto*, const v1::CompactRequest& request, v1::CompactResponse* response) {
    seen = request;
    response->set_count(2);
    if (request.values_sink().has_new_array()) {
      response->mutable_values()->mutable_new_array()->set_name("arrays/kept");
      response->mutable_values()->mutable_new_array()->set_dtype(v1::DTYPE_I32);
    } else if (!request.spec().omit_values()) {
      response->mutable_values()->mutable_inline_()->set_data(Data<int32_t>({7, 8}));
    }
    if (request.indices_sink().has_array())
      *response->mutable_indices()->mutable_array() = request.indices_sink().array();
    if (request.spec().return_indices() && !request.has_indices_sink()) {
      response->mutable_indices()->mutable_inline_()->set_data(Data<uint64_t>({1, 9}));
    }
    return grpc::Status::OK;
  };
  const auto here = client_.Compact<int32_t>(array, Where<int32_t>{Comparison::kLess, 3}, {.return_indices = true});
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_THAT(here->values, ElementsAre(7, 8));
  EXPECT_THAT(here->indices, ElementsAre(1, 9));
  EXPECT_EQ(seen.spec().predicate().value().int64_value(), 3);

  auto there = client_.CompactInto<int32_t>(array, ArrayPart(mask), {.values = NewArray{}, .indices = mask.Part(3)});
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->count, 2u);
  EXPECT_EQ(there->values.Release(), "arrays/kept");
  EXPECT_FALSE(there->indices.exists());
  EXPECT_EQ(seen.mask().array().name(), mask.name());
  EXPECT_EQ(seen.spec().mask(), v1::MASK_KIND_BYTES);
  EXPECT_EQ(seen.indices_sink().array().first_item(), 3u);
  EXPECT_TRUE(seen.spec().return_indices());

  there = client_.CompactInto<int32_t>(array, ArrayPart(mask), {.indices = mask.Part(3)});
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_TRUE(seen.spec().omit_values());
  EXPECT_FALSE(seen.has_values_sink());
}

// A result above a message comes as a stream, whose one request has no elements.
TEST_F(ArrayTest, ALongResultIsStreamed) {
  const std::vector<int32_t> values = Numbers(600'000);
  const Array array = Made(values.size());
  std::vector<v1::DifferenceRequest> requests;
  server_.prefix.stream_difference = [&](auto*, auto* rpc) {
    v1::DifferenceRequest request;
    while (rpc->Read(&request)) requests.push_back(request);
    v1::DifferenceResponse response;
    for (size_t first = 0; first < values.size(); first += 200'000) {
      response.mutable_values()->mutable_inline_()->set_data(
          Data(std::vector<int32_t>(values.begin() + first, values.begin() + first + 200'000)));
      rpc->Write(response);
    }
    return grpc::Status::OK;
  };
  const auto result = client_.Difference<int32_t>(array);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->values, values);
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_TRUE(requests[0].announces_end());
  EXPECT_TRUE(requests[0].end());
  EXPECT_EQ(requests[0].values().array().name(), array.name());
}

TEST_F(ArrayTest, AResultOfAnotherLengthIsTheServersError) {
  const Array array = Made(3);
  server_.prefix.scan = [](auto*, const v1::ScanRequest& request, v1::ScanResponse* response) {
    if (request.has_sink()) return grpc::Status::OK;
    response->mutable_values()->mutable_inline_()->set_data(Data<int32_t>({1, 3}));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(absl::IsInternal(client_.Scan<int32_t>(array).status()));
  EXPECT_TRUE(absl::IsInternal(client_.ScanInto<int32_t>(array, array).status()));
}

// In place the second run would scan the first one's result.
TEST_F(ArrayTest, OnlyWhatLeavesNothingIsRepeated) {
  const Array array = Made(3);
  int calls = 0;
  server_.prefix.scan = [&](auto*, const v1::ScanRequest&, v1::ScanResponse* response) {
    if (++calls == 1) return Unavailable();
    response->mutable_values()->mutable_inline_()->set_data(Data<int32_t>({1, 3, 4}));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(client_.Scan<int32_t>(array).ok());
  EXPECT_EQ(calls, 2);
  calls = 0;
  EXPECT_TRUE(absl::IsUnavailable(client_.ScanInto<int32_t>(array, array).status()));
  EXPECT_EQ(calls, 1);
}

TEST_F(ArrayTest, APlaceWithoutUseIsAnError) {
  const Array array = Made(3);
  const auto ignore = [](Pieces, Pieces) { return absl::OkStatus(); };
  EXPECT_EQ(ErrorField(
                client_.RunOnArrays(ScanSpec{.dtype = DType::kI32}, {.values = array, .mask = ArrayPart(array)}, ignore)
                    .status()),
            "mask");
  EXPECT_EQ(
      ErrorField(
          client_.RunOnArrays(DifferenceSpec{.dtype = DType::kI32}, {.values = array, .indices_to = NewArray{}}, ignore)
              .status()),
      "indices_sink");
}

}  // namespace
}  // namespace prefixd::client
