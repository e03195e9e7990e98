// The client's calls on resident arrays against a real server in this process: by handle, whatever the place of operand
// and result, is bit for bit what the same call with its values inline gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "tests/client/resident_fixture.h"

namespace prefixd::client {
namespace {

template <class T>
struct TypedResidentTest : ResidentTest {};

using Types = ::testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t, float, double>;
TYPED_TEST_SUITE(TypedResidentTest, Types);

TYPED_TEST(TypedResidentTest, ScanWhateverTheResultsPlace) {
  using T = TypeParam;
  Client& client = this->client_;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1003}, kLong}) {
    SCOPED_TRACE(count);
    const std::vector<T> values = this->template Values<T>(count);
    const ScanOptions<T> options = {.op = Op::kSum, .kind = ScanKind::kExclusive, .init = T{3}};
    const auto expected = client.Scan<T>(values, options);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto array = client.CreateArray<T>(values);
    ASSERT_TRUE(array.ok()) << array.status();
    // To this side.
    const auto here = client.Scan<T>(*array, options);
    ASSERT_TRUE(here.ok()) << here.status();
    EXPECT_EQ(Bits(here->values), Bits(expected->values));
    // To a new array.
    const auto made = client.ScanInto<T>(*array, NewArray{{.ttl = absl::Minutes(1)}}, options);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->count, count);
    EXPECT_EQ(made->values.info().ttl, absl::Minutes(1));
    EXPECT_EQ(Bits(*made->values.template Read<T>()), Bits(expected->values));
    // To a part of an array, which stays as it is around it.
    const auto room = client.CreateArray({.dtype = kDTypeOf<T>, .shape = {count + 20}}, Constant<T>(T{9}));
    ASSERT_TRUE(room.ok()) << room.status();
    const auto into = client.ScanInto<T>(*array, room->Part(8), options);
    ASSERT_TRUE(into.ok()) << into.status();
    EXPECT_EQ(into->count, count);
    EXPECT_FALSE(into->values.exists());
    std::vector<T> around(count + 20, T{9});
    std::copy(expected->values.begin(), expected->values.end(), around.begin() + 8);
    EXPECT_EQ(Bits(*room->template Read<T>()), Bits(around));
    // In place.
    const auto in_place = client.ScanInto<T>(*array, *array, options);
    ASSERT_TRUE(in_place.ok()) << in_place.status();
    EXPECT_EQ(Bits(*array->template Read<T>()), Bits(expected->values));
    // And what undoes it.
    const auto back = client.DifferenceInto<T>(*array, NewArray{}, {.init = T{3}});
    ASSERT_TRUE(back.ok()) << back.status();
    const auto inline_back = client.Difference<T>(expected->values, {.init = T{3}});
    EXPECT_EQ(Bits(*back->values.template Read<T>()), Bits(inline_back->values));
    const auto back_here = client.Difference<T>(*array, {.init = T{3}});
    ASSERT_TRUE(back_here.ok()) << back_here.status();
    EXPECT_EQ(Bits(back_here->values), Bits(inline_back->values));
  }
}

TYPED_TEST(TypedResidentTest, ReduceAndCompactWhateverThePlaces) {
  using T = TypeParam;
  Client& client = this->client_;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1003}, kLong}) {
    SCOPED_TRACE(count);
    const std::vector<T> values = this->template Values<T>(count);
    const auto array = client.CreateArray<T>(values);
    ASSERT_TRUE(array.ok()) << array.status();
    for (const Op op : {Op::kSum, Op::kMax}) {
      const auto expected = client.Reduce<T>(values, {.op = op});
      const auto reduced = client.Reduce<T>(*array, {.op = op});
      ASSERT_TRUE(expected.ok() && reduced.ok()) << reduced.status();
      EXPECT_EQ(Bits(std::vector<T>{reduced->value}), Bits(std::vector<T>{expected->value}));
      EXPECT_EQ(reduced->count, count);
      EXPECT_EQ(reduced->index, expected->index);
      const auto made = client.ReduceInto<T>(*array, NewArray{}, {.op = op});
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(Bits(*made->values.template Read<T>()), Bits(std::vector<T>{expected->value}));
      EXPECT_EQ(made->count, count);
      const auto room = client.CreateArray<T>(std::vector<T>(3));
      const auto into = client.ReduceInto<T>(*array, room->Part(1), {.op = op});
      ASSERT_TRUE(into.ok()) << into.status();
      EXPECT_EQ(Bits(*room->template Read<T>()), Bits(std::vector<T>{T{0}, expected->value, T{0}}));
    }
    const Where<T> where = {Comparison::kGreater, T{1}};
    std::vector<uint8_t> mask(count);
    for (size_t i = 0; i < count; ++i) mask[i] = i % 3 == 0;
    const auto resident_mask = client.CreateArray<uint8_t>(mask);
    ASSERT_TRUE(resident_mask.ok()) << resident_mask.status();
    for (const bool by_mask : {false, true}) {
      SCOPED_TRACE(by_mask);
      const CompactOptions options = {.invert = true, .return_indices = true};
      const auto expected = by_mask ? client.Compact<T>(values, absl::MakeConstSpan(mask), options)
                                    : client.Compact<T>(values, where, options);
      ASSERT_TRUE(expected.ok()) << expected.status();
      const Selector<T> select = by_mask ? Selector<T>(ArrayPart(*resident_mask)) : Selector<T>(where);
      const auto here = client.Compact<T>(*array, select, options);
      ASSERT_TRUE(here.ok()) << here.status();
      EXPECT_EQ(Bits(here->values), Bits(expected->values));
      EXPECT_EQ(here->indices, expected->indices);
      const auto made = client.CompactInto<T>(*array, select, {.values = NewArray{}, .indices = NewArray{}}, options);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(made->count, expected->values.size());
      EXPECT_EQ(Bits(*made->values.template Read<T>()), Bits(expected->values));
      EXPECT_EQ(*made->indices.template Read<uint64_t>(), expected->indices);
      const auto room = client.CreateArray({.dtype = kDTypeOf<T>, .shape = {count + 1}});
      const auto into = client.CompactInto<T>(*array, select, {.values = *room}, options);
      ASSERT_TRUE(into.ok()) << into.status();
      EXPECT_EQ(into->count, expected->values.size());
      EXPECT_EQ(Bits(*room->template Read<T>(0, into->count)), Bits(expected->values));
    }
  }
}

TEST_F(ResidentTest, PartsAreOperandsToo) {
  const std::vector<float> values = Values<float>(5000);
  const auto array = client_.CreateArray<float>(values);
  ASSERT_TRUE(array.ok()) << array.status();
  const absl::Span<const float> part = absl::MakeConstSpan(values).subspan(1001, 777);
  EXPECT_EQ(Bits(client_.Scan<float>(array->Part(1001, 777))->values), Bits(client_.Scan<float>(part)->values));
  const auto reduced = client_.Reduce<float, double>(array->Part(1001, 777));
  EXPECT_EQ(reduced->value, (client_.Reduce<float, double>(part)->value));
  EXPECT_TRUE(client_.ScanInto<float>(array->Part(1001, 777), array->Part(1001, 777)).ok());
  std::vector<float> after = values;
  const auto scanned = client_.Scan<float>(part);
  std::copy(scanned->values.begin(), scanned->values.end(), after.begin() + 1001);
  EXPECT_EQ(Bits(*array->Read<float>()), Bits(after));
}

TEST_F(ResidentTest, ReverseHasNoLimitOnTheDevice) {
  const std::vector<int64_t> values = Values<int64_t>(kLong);
  const auto array = client_.CreateArray<int64_t>(values);
  const auto scanned = client_.ScanInto<int64_t>(*array, NewArray{}, {.reverse = true});
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  uint64_t sum = 0;
  std::vector<int64_t> expected(kLong);
  for (size_t i = kLong; i-- > 0;) expected[i] = static_cast<int64_t>(sum += static_cast<uint64_t>(values[i]));
  EXPECT_EQ(*scanned->values.Read<int64_t>(), expected);
  const auto back = client_.DifferenceInto<int64_t>(scanned->values, NewArray{}, {.reverse = true});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back->values.Read<int64_t>(), values);
  // On the way back it has.
  EXPECT_EQ(ErrorReason(client_.Scan<int64_t>(*array, {.reverse = true}).status()), "REVERSE_ON_STREAM");
  EXPECT_EQ(ErrorReason(client_.Difference<int64_t>(*array, {.reverse = true}).status()), "REVERSE_ON_STREAM");
  EXPECT_EQ(client_.Scan<int64_t>(array->Part(kLong - 3), {.reverse = true})->values,
            std::vector<int64_t>(expected.end() - 3, expected.end()));
}

TEST_F(ResidentTest, AResultOfAnotherType) {
  const auto array = client_.CreateArray<uint8_t>(Values<uint8_t>(1003));
  const auto wide = client_.ScanInto<uint8_t, uint64_t>(*array, NewArray{});
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(wide->values.dtype(), DType::kU64);
  EXPECT_EQ(*wide->values.Read<uint64_t>(), (client_.Scan<uint8_t, uint64_t>(Values<uint8_t>(1003))->values));
}

TEST_F(ResidentTest, ErrorsOfPlaces) {
  const auto array = client_.CreateArray<int32_t>(Values<int32_t>(100));
  const auto small = client_.CreateArray<int32_t>(Values<int32_t>(10));
  EXPECT_EQ(ErrorReason(client_.Scan<float>(*array).status()), "ARRAY_TYPE");
  EXPECT_EQ(ErrorReason(client_.Scan<int32_t>(array->Part(50, 51)).status()), "ARRAY_RANGE");
  EXPECT_EQ(ErrorReason(client_.Scan<int32_t>(array->Part(101)).status()), "ARRAY_RANGE");
  EXPECT_EQ(ErrorReason(client_.Scan<int32_t>(array->Part(1, UINT64_MAX)).status()), "ARRAY_RANGE");
  EXPECT_EQ(ErrorReason(client_.ScanInto<int32_t>(*array, *small).status()), "SINK_TOO_SMALL");
  EXPECT_EQ(ErrorReason(client_.ScanInto<int32_t>(array->Part(0, 50), array->Part(10, 50)).status()), "OVERLAP");
  EXPECT_EQ(ErrorReason(client_.DifferenceInto<int32_t>(*array, *array).status()), "OVERLAP");
  EXPECT_EQ(
      ErrorReason(
          client_.CompactInto<int32_t>(*array, Where<int32_t>{Comparison::kNotEqual, 0}, {.values = *small}).status()),
      "SINK_TOO_SMALL");
  EXPECT_EQ(ErrorReason(array->CopyFrom(array->Part(0, 50), 10).status()), "OVERLAP");
}

TEST_F(ResidentTest, FillCopyStatRenewAndDelete) {
  auto array = client_.CreateArray({.dtype = DType::kF32, .shape = {30, 20}}, Iota<float>(1, 0.5f));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(*array->Read<float>(0, 3), ::testing::ElementsAre(1, 1.5, 2));
  EXPECT_TRUE(array->Fill(Constant(7.0f), 1, 1).ok());
  EXPECT_TRUE(array->Fill(Iota<float>(), 598).ok());
  EXPECT_THAT(*array->Read<float>(0, 3), ::testing::ElementsAre(1, 7, 2));
  EXPECT_THAT(*array->Read<float>(597), ::testing::ElementsAre(299.5, 0, 1));
  const auto other = client_.CreateArray({.dtype = DType::kF32, .shape = {10}});
  EXPECT_TRUE(other->CopyFrom(array->Part(0, 3), 6).ok());
  EXPECT_THAT(*other->Read<float>(5), ::testing::ElementsAre(0, 1, 7, 2, 0));
  // Two halves of one stream of random numbers are the whole.
  const auto whole = client_.CreateArray({.dtype = DType::kU32, .shape = {1000}}, Random<uint32_t>(5));
  const auto halves = client_.CreateArray({.dtype = DType::kU32, .shape = {1000}}, Random<uint32_t>(5));
  EXPECT_TRUE(halves->Fill(Random<uint32_t>(5, 300), 300).ok());
  EXPECT_EQ(*halves->Read<uint32_t>(), *whole->Read<uint32_t>());

  const auto info = array->Stat();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_THAT(info->shape, ::testing::ElementsAre(30, 20));
  const auto renewed = array->Renew({.ttl = absl::Hours(2), .renew_on_use = true});
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->ttl, absl::Hours(2));
  EXPECT_GT(renewed->expire_time, info->expire_time);
  const std::string name = array->name();
  EXPECT_TRUE(array->Delete().ok());
  EXPECT_EQ(ErrorReason(client_.BorrowArray(name).status()), "ARRAY_EXPIRED");
  EXPECT_EQ(ErrorReason(client_.ListArrays().status()), "LIST_NEEDS_NAME");
}

TEST_F(ResidentTest, LargeArraysOverSeveralConnections) {
  const std::vector<float> values = Values<float>((64 << 20) / 4 + 1234);
  const auto array = client_.CreateArray<float>(values);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(Bits(*array->Read<float>()), Bits(values));
}

// Many threads use one handle.
TEST_F(ResidentTest, ThreadsShareAHandle) {
  const auto array = client_.CreateArray({.dtype = DType::kI32, .shape = {8000}});
  ASSERT_TRUE(array.ok()) << array.status();
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::vector<int32_t> mine(1000, i);
      for (int turn = 0; turn < 20; ++turn) {
        EXPECT_TRUE(array->Write<int32_t>(mine, i * 1000).ok());
        EXPECT_EQ(*array->Read<int32_t>(i * 1000, 1000), mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace prefixd::client
