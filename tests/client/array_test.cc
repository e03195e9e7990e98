// Resident arrays: their handles, and what is tried again.
#include "client/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/client/array_fixture.h"

namespace prefixd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace prefixd::client
