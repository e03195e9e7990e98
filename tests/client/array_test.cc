// Resident arrays: their handles, what calls by handle put into their requests, and transfers over several connections.
#include "client/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/array_transfer.h"
#include "client/client.h"
#include "tests/client/fake_server.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int32_t> Numbers(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> numbers(count);
  for (int32_t& number : numbers) number = static_cast<int32_t>(random());
  return numbers;
}

grpc::Status Unavailable() { return {grpc::StatusCode::UNAVAILABLE, "gone"}; }

class ArrayTest : public ::testing::Test {
 protected:
  Array Made(uint64_t num_items) {
    absl::StatusOr<Array> array = client_.CreateArray({.dtype = DType::kI32, .shape = {num_items}});
    EXPECT_TRUE(array.ok()) << array.status();
    return *std::move(array);
  }

  FakeServer server_;
  Client client_{server_.address()};
};

// ---- Handles -------------------------------------------------------------------------------------------------------
TEST_F(ArrayTest, CreationSaysWhatIsWanted) {
  const absl::StatusOr<Array> array = client_.CreateArray(
      {.dtype = DType::kI32, .shape = {3, 5}, .lifetime = {.ttl = absl::Milliseconds(1500), .renew_on_use = true}},
      Iota<int32_t>(7, 2), {.request_id = "mine"});
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->num_items(), 15u);
  EXPECT_EQ(array->dtype(), DType::kI32);
  EXPECT_THAT(array->info().shape, ElementsAre(3, 5));
  ASSERT_THAT(server_.arrays.creations, SizeIs(1));
  const v1::CreateArrayRequest& request = server_.arrays.creations[0];
  EXPECT_EQ(request.request_id(), "mine");
  EXPECT_EQ(request.lifetime().ttl().seconds(), 1);
  EXPECT_EQ(request.lifetime().ttl().nanos(), 500'000'000);
  EXPECT_TRUE(request.lifetime().renew_on_use());
  EXPECT_EQ(request.fill().iota().start().int64_value(), 7);
  EXPECT_EQ(request.fill().iota().step().int64_value(), 2);
}

TEST_F(ArrayTest, AFillOfAnotherTypeIsRefusedHere) {
  const absl::StatusOr<Array> array = client_.CreateArray({.dtype = DType::kI32, .shape = {3}}, Constant(1.5f));
  EXPECT_EQ(ErrorReason(array.status()), "ARRAY_TYPE");
  EXPECT_THAT(server_.arrays.creations, IsEmpty());
}

TEST_F(ArrayTest, EndsWithItsHandle) {
  std::string name;
  {
    const Array array = Made(4);
    name = array.name();
    EXPECT_TRUE(server_.arrays.Has(name));
  }
  EXPECT_FALSE(server_.arrays.Has(name));
}

TEST_F(ArrayTest, MovesWithItsHandle) {
  Array first = Made(4);
  const std::string name = first.name();
  Array second = std::move(first);
  EXPECT_FALSE(first.exists());  // NOLINT(bugprone-use-after-move): that it is empty is promised.
  EXPECT_EQ(second.name(), name);
  Array third = Made(5);
  const std::string replaced = third.name();
  third = std::move(second);
  EXPECT_FALSE(server_.arrays.Has(replaced));
  EXPECT_TRUE(server_.arrays.Has(name));
  EXPECT_EQ(third.num_items(), 4u);
}

TEST_F(ArrayTest, StaysWhereItsNameIsGivenUp) {
  std::string name;
  {
    Array array = Made(4);
    name = array.Release();
    EXPECT_FALSE(array.exists());
  }
  EXPECT_TRUE(server_.arrays.Has(name));
}

TEST_F(ArrayTest, StaysWhereItIsBorrowed) {
  const std::string name = Made(4).Release();
  {
    const absl::StatusOr<Array> array = client_.BorrowArray(name);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->num_items(), 4u);
    EXPECT_EQ(array->dtype(), DType::kI32);
  }
  EXPECT_TRUE(server_.arrays.Has(name));
  EXPECT_EQ(ErrorReason(client_.BorrowArray("arrays/none").status()), "ARRAY_UNKNOWN");
}

TEST_F(ArrayTest, OutlivesItsClient) {
  Array array;
  {
    Client client(server_.address());
    array = *client.CreateArray({.dtype = DType::kI32, .shape = {3}});
  }
  EXPECT_TRUE(array.Stat().ok());
}

TEST_F(ArrayTest, IsDeletedByHandAndByName) {
  Array array = Made(4);
  const std::string name = array.name();
  EXPECT_TRUE(array.Delete().ok());
  EXPECT_FALSE(array.exists());
  EXPECT_FALSE(server_.arrays.Has(name));
  EXPECT_EQ(ErrorReason(client_.DeleteArray(name)), "ARRAY_UNKNOWN");
  const std::string other = Made(4).Release();
  EXPECT_TRUE(client_.DeleteArray(other).ok());
  EXPECT_FALSE(server_.arrays.Has(other));
}

// A deletion whose answer was lost is asked for again, and then finds nothing.
TEST_F(ArrayTest, ADeletionThatWasNotAnsweredHasSucceeded) {
  int calls = 0;
  Array array = Made(4);
  server_.arrays.before = [&](const std::string& method, const std::string&) {
    if (method != "DeleteArray") return grpc::Status::OK;
    if (++calls == 1) return Unavailable();
    return DetailedError(grpc::StatusCode::NOT_FOUND, "ARRAY_EXPIRED", "it was deleted");
  };
  EXPECT_TRUE(array.Delete().ok());
  EXPECT_EQ(calls, 2);
  Array other = Made(4);
  const absl::Status status = other.Delete();
  EXPECT_EQ(ErrorReason(status), "ARRAY_EXPIRED");
  EXPECT_TRUE(other.exists());
}

// An end that waits for ever would hang whoever loses a server.
TEST_F(ArrayTest, EndsThoughTheServerDoesNotAnswer) {
  Array array = Made(4);
  const auto ended = std::make_shared<absl::Notification>();  // The server's, which wakes when this has ended.
  server_.arrays.before = [ended](const std::string&, const std::string&) {
    EXPECT_TRUE(ended->WaitForNotificationWithTimeout(absl::Seconds(60)));
    return grpc::Status::OK;
  };
  array = Array();
  ended->Notify();
}

TEST_F(ArrayTest, AnEmptyHandleSaysSo) {
  Array array;
  EXPECT_TRUE(absl::IsFailedPrecondition(array.Write<int32_t>({})));
  EXPECT_TRUE(absl::IsFailedPrecondition(array.Read<int32_t>().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(array.Fill(Constant(1)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(array.Stat().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(array.Renew({}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(array.Delete()));
  EXPECT_TRUE(absl::IsFailedPrecondition(client_.Reduce<int32_t>(array).status()));
}

// ---- Retries -------------------------------------------------------------------------------------------------------
// A creation that was sent may have been done: another would leave an array that nobody knows of.
TEST_F(ArrayTest, WhatMayHaveBegunIsNotRepeated) {
  std::map<std::string, int> calls;
  const Array array = Made(4);
  server_.arrays.before = [&](const std::string& method, const std::string&) {
    ++calls[method];
    return Unavailable();
  };
  EXPECT_TRUE(absl::IsUnavailable(client_.CreateArray({.dtype = DType::kI32, .shape = {3}}).status()));
  EXPECT_TRUE(absl::IsUnavailable(array.Fill(Constant<int32_t>(1)).status()));
  EXPECT_TRUE(absl::IsUnavailable(array.CopyFrom(array.Part(0, 1), 1).status()));
  EXPECT_TRUE(absl::IsUnavailable(array.Write<int32_t>(std::vector<int32_t>{1})));
  EXPECT_EQ(calls["CreateArray"], 1);
  EXPECT_EQ(calls["FillArray"], 1);
  EXPECT_EQ(calls["CopyArray"], 1);
  EXPECT_EQ(calls["WriteArray"], 1);
  server_.arrays.before = nullptr;
}

TEST_F(ArrayTest, WhatOnlyReadsIsRepeated) {
  std::map<std::string, int> calls;
  const Array array = Made(4);
  server_.arrays.before = [&](const std::string& method, const std::string&) {
    return ++calls[method] == 1 ? Unavailable() : grpc::Status::OK;
  };
  EXPECT_TRUE(array.Stat().ok());
  EXPECT_TRUE(array.Read<int32_t>().ok());
  EXPECT_TRUE(array.Renew({.ttl = absl::Seconds(1)}).ok());
  EXPECT_TRUE(client_.ListArrays().ok());
  EXPECT_EQ(calls["GetArray"], 2);
  EXPECT_EQ(calls["ReadArray"], 2);
  EXPECT_EQ(calls["RenewArray"], 2);
  EXPECT_EQ(calls["ListArrays"], 2);
}

TEST_F(ArrayTest, ARefusalIsNoBeginning) {
  int calls = 0;
  server_.arrays.before = [&](const std::string&, const std::string&) {
    return ++calls == 1 ? DetailedError(grpc::StatusCode::UNAVAILABLE, "DRAINING", "stopping") : grpc::Status::OK;
  };
  const absl::StatusOr<Array> array = client_.CreateArray({.dtype = DType::kI32, .shape = {3}});
  EXPECT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(calls, 2);
}

// ---- Several servers -----------------------------------------------------------------------------------------------
TEST(ArrayServers, CallsGoWhereTheArrayIs) {
  FakeServer servers[2];
  for (FakeServer& server : servers) {
    server.arrays.before = [](const std::string& method, const std::string&) {
      if (method == "CreateArray") return grpc::Status::OK;
      return DetailedError(grpc::StatusCode::NOT_FOUND, "ARRAY_ELSEWHERE", "another server made it");
    };
  }
  Client client(std::vector<std::string>{servers[0].address(), servers[1].address()});
  for (int i = 0; i < 2; ++i) {  // One on each, for calls take turns.
    Array array = *client.CreateArray({.dtype = DType::kI32, .shape = {3}});
    FakeServer& home = servers[servers[0].arrays.size() != 0 ? 0 : 1];
    const auto elsewhere = std::exchange(home.arrays.before, nullptr);
    for (int turn = 0; turn < 4; ++turn) {
      EXPECT_TRUE(array.Stat().ok());
      EXPECT_TRUE(array.Read<int32_t>().ok());
      const absl::StatusOr<Array> borrowed = client.BorrowArray(array.name());
      EXPECT_TRUE(borrowed.ok()) << borrowed.status();
    }
    EXPECT_TRUE(client.DeleteArray(array.name()).ok());
    EXPECT_EQ(home.arrays.size(), 0u);
    array.Release();
    home.arrays.before = elsewhere;
  }
}

// ---- What moves elements -------------------------------------------------------------------------------------------
TEST_F(ArrayTest, WritesAndReadsRanges) {
  const Array array = Made(1000);
  EXPECT_TRUE(array.Write<int32_t>(std::vector<int32_t>{1, 2, 3}, 5).ok());
  EXPECT_THAT(*array.Read<int32_t>(4, 5), ElementsAre(0, 1, 2, 3, 0));
  EXPECT_THAT(*array.Read<int32_t>(998), ElementsAre(0, 0));
  EXPECT_THAT(*array.Read<int32_t>(1000), IsEmpty());
  EXPECT_TRUE(array.Write<int32_t>({}, 1000).ok());
}

TEST_F(ArrayTest, RangesAndTypesAreCheckedHere) {
  const Array array = Made(10);
  server_.arrays.before = [](const std::string& method, const std::string&) {
    if (method != "DeleteArray") ADD_FAILURE() << method << " was called";
    return grpc::Status::OK;
  };
  EXPECT_EQ(ErrorReason(array.Write<float>(std::vector<float>{1})), "ARRAY_TYPE");
  EXPECT_EQ(ErrorReason(array.Read<uint32_t>().status()), "ARRAY_TYPE");
  EXPECT_EQ(ErrorReason(array.Fill(Constant(1.0)).status()), "ARRAY_TYPE");
  EXPECT_EQ(ErrorReason(array.Write<int32_t>(std::vector<int32_t>(3), 8)), "ARRAY_RANGE");
  EXPECT_EQ(ErrorReason(array.Read<int32_t>(11).status()), "ARRAY_RANGE");
  EXPECT_EQ(ErrorReason(array.Read<int32_t>(1, UINT64_MAX).status()), "ARRAY_RANGE");
  EXPECT_EQ(ErrorReason(array.WriteBytes(AsBytes(std::string("abc")))), "LENGTH_NOT_MULTIPLE");
}

TEST_F(ArrayTest, UploadsAnArray) {
  const std::vector<int32_t> values = Numbers(300'001);
  const absl::StatusOr<Array> array = client_.CreateArray<int32_t>(values, {.renew_on_use = true});
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(server_.arrays.Contents(array->name()), Data(values));
  EXPECT_EQ(*array->Read<int32_t>(), values);
  EXPECT_TRUE(server_.arrays.creations[0].lifetime().renew_on_use());
}

// What could not be written is not left behind.
TEST_F(ArrayTest, AFailedUploadLeavesNothing) {
  server_.arrays.while_writing = [](auto*, uint64_t, uint64_t) {
    return grpc::Status(grpc::StatusCode::ABORTED, "no");
  };
  EXPECT_TRUE(absl::IsAborted(client_.CreateArray<int32_t>(Numbers(10)).status()));
  EXPECT_THAT(server_.arrays.creations, SizeIs(1));
  EXPECT_EQ(server_.arrays.size(), 0u);
}

TEST_F(ArrayTest, FillCopyAndRenewSayWhatIsWanted) {
  const Array array = Made(10);
  const Array other = Made(20);
  EXPECT_EQ(array.Fill(Random<int32_t>(5, 6), 2, 3)->num_items, 3u);
  EXPECT_EQ(array.CopyFrom(other.Part(4, 5), 1)->num_items, 4u);
  const absl::StatusOr<ArrayInfo> renewed = array.Renew({.ttl = absl::Seconds(90)});
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->ttl, absl::Seconds(90));
  const v1::FillArrayRequest& fill = server_.arrays.fills.at(0);
  EXPECT_EQ(fill.array().name(), array.name());
  EXPECT_EQ(fill.array().first_item(), 2u);
  EXPECT_EQ(fill.array().num_items(), 3u);
  EXPECT_EQ(fill.fill().random().seed(), 5u);
  EXPECT_EQ(fill.fill().random().first(), 6u);
  const v1::CopyArrayRequest& copy = server_.arrays.copies.at(0);
  EXPECT_EQ(copy.from().name(), other.name());
  EXPECT_EQ(copy.from().first_item(), 4u);
  EXPECT_EQ(copy.from().num_items(), 5u);
  EXPECT_EQ(copy.to().name(), array.name());
  EXPECT_EQ(copy.to().first_item(), 1u);
  EXPECT_EQ(copy.to().num_items(), 5u);
}

TEST_F(ArrayTest, ListsAllPages) {
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(Made(i + 1).Release());
  const auto arrays = client_.ListArrays();
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  std::vector<std::string> listed;
  for (const ArrayInfo& info : *arrays) listed.push_back(info.name);
  EXPECT_EQ(listed, names);
}

// ---- Several connections -------------------------------------------------------------------------------------------
constexpr size_t kLargeItems = (64 << 20) / 4 + 12'345;

TEST(ArrayTransfer, ConnectionsBySize) {
  EXPECT_EQ(NumLines(0), 1u);
  EXPECT_EQ(NumLines((16 << 20) - 1), 1u);
  EXPECT_EQ(NumLines(16 << 20), 2u);
  EXPECT_EQ(NumLines(64 << 20), 8u);
  EXPECT_EQ(NumLines(uint64_t{1} << 40), 8u);
}

TEST_F(ArrayTest, LargeArraysTakeSeveralConnections) {
  const std::vector<int32_t> values = Numbers(kLargeItems);
  const Array array = Made(kLargeItems + 7);
  ASSERT_TRUE(array.Write<int32_t>(values, 7).ok());
  EXPECT_THAT(server_.arrays.peers(), SizeIs(8));
  EXPECT_EQ(server_.arrays.Contents(array.name()).substr(28), Data(values));
  EXPECT_EQ(*array.Read<int32_t>(7), values);
  EXPECT_THAT(server_.arrays.peers(), SizeIs(8));  // They stay, and are used again.
}

TEST_F(ArrayTest, SmallArraysTakeOne) {
  const Array array = Made(3'000'000);
  ASSERT_TRUE(array.Write<int32_t>(Numbers(3'000'000)).ok());
  EXPECT_THAT(server_.arrays.peers(), SizeIs(1));
}

// The first error ends the other shares, and is the one that is told.
TEST_F(ArrayTest, AnErrorOfOneConnectionEndsTheOthers) {
  const Array array = Made(kLargeItems);
  const absl::Time end = absl::Now() + absl::Seconds(20);    // For a hang.
  const auto ended = std::make_shared<std::atomic<int>>(0);  // Also the server's, which goes on longer.
  const auto begun = std::make_shared<std::atomic<int>>(0);  // The others: a call that is cancelled before never comes.
  server_.arrays.while_writing = [ended, begun, end](grpc::ServerContext* context, uint64_t first_item, uint64_t) {
    if (first_item == 0) {
      while (*begun < 7 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
      return grpc::Status(grpc::StatusCode::DATA_LOSS, "the first");
    }
    ++*begun;
    while (!context->IsCancelled() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    if (context->IsCancelled()) ++*ended;
    return grpc::Status::CANCELLED;
  };
  const absl::Status status = array.Write<int32_t>(Numbers(kLargeItems));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  while (*ended < 7 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(*ended, 7);
}

TEST_F(ArrayTest, TheCallersCancellationEndsAllConnections) {
  const Array array = Made(kLargeItems);
  const auto cancellation = std::make_shared<Cancellation>();  // Also the server's, which goes on longer.
  server_.arrays.while_writing = [cancellation](grpc::ServerContext* context, uint64_t, uint64_t) {
    cancellation->Cancel();
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  };
  EXPECT_TRUE(absl::IsCancelled(array.Write<int32_t>(Numbers(kLargeItems), 0, {.cancellation = cancellation.get()})));
}

// A server that allows its caller few connections gets all over them.
TEST_F(ArrayTest, AConnectionTooManyLeavesItsShareToTheFirst) {
  const std::vector<int32_t> values = Numbers(kLargeItems);
  const Array array = Made(kLargeItems);
  ASSERT_TRUE(array.Write<int32_t>(std::vector<int32_t>{0}).ok());
  const std::string first = *server_.arrays.peers().begin();
  std::atomic<int> refused = 0;
  server_.arrays.before = [&](const std::string&, const std::string& peer) {
    if (peer == first) return grpc::Status::OK;
    ++refused;
    return DetailedError(grpc::StatusCode::RESOURCE_EXHAUSTED, "CALLER_CONNECTIONS", "too many");
  };
  const absl::Status status = array.Write<int32_t>(values);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(refused, 7);
  EXPECT_EQ(*array.Read<int32_t>(), values);
  server_.arrays.before = nullptr;
}

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
    return grpc::Status::OK;
  };
  const auto reduced = client_.Reduce<int32_t>(array, {.op = Op::kMax});
  ASSERT_TRUE(reduced.ok()) << reduced.status();
  EXPECT_EQ(reduced->value, 6);
  EXPECT_EQ(reduced->count, 10u);
  EXPECT_EQ(reduced->index, 4u);
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
  EXPECT_EQ(ErrorField(
                client_.RunOnArrays(ScanSpec{.dtype = DType::kI32}, {.values = array, .indices_to = NewArray{}}, ignore)
                    .status()),
            "indices_sink");
}

}  // namespace
}  // namespace prefixd::client
