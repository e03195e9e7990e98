#include "client/prefixctl/number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "base/status.h"

namespace prefixd::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseNumber, Accepts) {
  EXPECT_EQ(ParseNumber(DType::kI32, "-2147483648")->As<int32_t>(), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(ParseNumber(DType::kI8, "-128")->As<int8_t>(), -128);
  EXPECT_EQ(ParseNumber(DType::kU8, "65")->As<uint8_t>(), 65);  // A number, not a letter.
  EXPECT_EQ(ParseNumber(DType::kU16, "+65535")->As<uint16_t>(), 65535);
  EXPECT_EQ(ParseNumber(DType::kI64, "-9223372036854775808")->As<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseNumber(DType::kU64, "18446744073709551615")->As<uint64_t>(), ~uint64_t{0});
  EXPECT_EQ(ParseNumber(DType::kU32, "+7")->As<uint32_t>(), 7u);
  EXPECT_EQ(ParseNumber(DType::kF32, "0.1")->As<float>(), 0.1f);
  EXPECT_EQ(ParseNumber(DType::kF64, "1e-310")->As<double>(), 1e-310);
  EXPECT_EQ(ParseNumber(DType::kF64, ".5")->As<double>(), 0.5);
  EXPECT_TRUE(std::signbit(ParseNumber(DType::kF64, "-0")->As<double>()));
  EXPECT_TRUE(std::isnan(ParseNumber(DType::kF32, "NaN")->As<float>()));
  EXPECT_EQ(ParseNumber(DType::kF32, "-Infinity")->As<float>(), -INFINITY);
  EXPECT_EQ(ParseNumber(DType::kF16, "+1.5")->bits, 0x3e00u);
  EXPECT_EQ(ParseNumber(DType::kBF16, "-inf")->bits, 0xff80u);
  EXPECT_EQ(ParseNumber(DType::kBF16, "-NaN")->bits, 0x7fc0u);
}

// A digit far behind decides what an f64 would call the middle of two values.
TEST(ParseNumber, RoundsOnce) {
  const std::string middle = "1.00048828125";  // 1 + 2^-11.
  const std::string below = "1.000488281249999999999999999999999999";
  EXPECT_EQ(ParseNumber(DType::kF16, middle)->bits, 0x3c00u);
  EXPECT_EQ(ParseNumber(DType::kF16, middle + "0000000000000000000000001")->bits, 0x3c01u);
  EXPECT_EQ(ParseNumber(DType::kF16, "-" + middle + "0000000000000000000000001")->bits, 0xbc01u);
  EXPECT_EQ(ParseNumber(DType::kF16, "1.00146484375")->bits, 0x3c02u);  // The next middle.
  EXPECT_EQ(ParseNumber(DType::kF16, "1.001464843749999999999999999999999999")->bits, 0x3c01u);
  EXPECT_EQ(ParseNumber(DType::kF16, below)->bits, 0x3c00u);
  EXPECT_EQ(ParseNumber(DType::kBF16, "1.00390625000000000000000000000000001")->bits, 0x3f81u);
}

TEST(ParseNumber, Refuses) {
  for (const char* text : {"", "+", "-", "+-1", "++1", "1x", "x", "1 2", "1,2", "0x10", "--1", "1.5", "1e3", "nan"}) {
    EXPECT_THAT(ParseNumber(DType::kI32, text).status().message(), HasSubstr("is no number of type i32")) << text;
  }
  EXPECT_FALSE(ParseNumber(DType::kI32, std::string_view("1\0", 2)).ok());
  EXPECT_FALSE(ParseNumber(DType::kU32, "-1").ok());
  EXPECT_THAT(ParseNumber(DType::kF64, "\x1b[2J").status().message(), HasSubstr("'\\x1b[2J'"));
  for (const char* text : {"", "abc", "1.5.2", "1e", "infinit", "1d", "0x1p3", "1,5"}) {
    EXPECT_FALSE(ParseNumber(DType::kF64, text).ok()) << text;
  }
}

TEST(ParseNumber, KnowsTheRange) {
  EXPECT_THAT(ParseNumber(DType::kI32, "2147483648").status().message(), HasSubstr("out of the range of i32"));
  EXPECT_FALSE(ParseNumber(DType::kU64, "18446744073709551616").ok());
  EXPECT_FALSE(ParseNumber(DType::kI8, "128").ok());
  EXPECT_FALSE(ParseNumber(DType::kU8, "256").ok());
  EXPECT_FALSE(ParseNumber(DType::kI16, "-32769").ok());
  EXPECT_FALSE(ParseNumber(DType::kF32, "1e39").ok());
  EXPECT_FALSE(ParseNumber(DType::kF64, "1e309").ok());
  // A number that is too small for its type is rounded, as strtod does.
  EXPECT_EQ(ParseNumber(DType::kF64, "1e-400")->As<double>(), 0);
  EXPECT_EQ(ParseNumber(DType::kF32, "1e-46")->As<float>(), 0);
  EXPECT_EQ(ParseNumber(DType::kF32, "+1e-44")->As<float>(), 1e-44f);
  EXPECT_TRUE(std::signbit(ParseNumber(DType::kF64, "-1e-400")->As<double>()));
  EXPECT_FALSE(ParseNumber(DType::kF64, "1e-400x").ok());
  EXPECT_THAT(ParseNumber(DType::kF16, "65520").status().message(), HasSubstr("out of the range of f16"));
  EXPECT_FALSE(ParseNumber(DType::kF16, "-1e400").ok());
  EXPECT_FALSE(ParseNumber(DType::kBF16, "3.4e38").ok());
  EXPECT_EQ(ParseNumber(DType::kF16, "65519.999")->bits, 0x7bffu);
  EXPECT_EQ(ParseNumber(DType::kF16, "-1e-400")->bits, 0x8000u);
  EXPECT_EQ(ParseNumber(DType::kF16, "2.9e-8")->bits, 0u);
  EXPECT_EQ(ParseNumber(DType::kF16, "3e-8")->bits, 1u);
  EXPECT_FALSE(ParseNumber(DType::kF16, "1x").ok());
}

template <class T>
void ExpectRoundTrip(T number) {
  const DType dtype = kDTypeOf<T>;
  const Value value = Value::Of(number);
  const std::string text = FormatNumber(dtype, value);
  const auto parsed = ParseNumber(dtype, text);
  ASSERT_TRUE(parsed.ok()) << text;
  ASSERT_EQ(*parsed, value) << text;
}

TEST(FormatNumber, ReadsBackBitForBit) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20000; ++i) {
    const Value value = {random()};
    const Value half = {value.bits >> 32};
    ExpectRoundTrip(value.As<int64_t>());
    ExpectRoundTrip(value.As<uint64_t>());
    ExpectRoundTrip(half.As<int32_t>());
    ExpectRoundTrip(half.As<int8_t>());
    ExpectRoundTrip(half.As<uint8_t>());
    ExpectRoundTrip(half.As<int16_t>());
    ExpectRoundTrip(half.As<uint16_t>());
    ExpectRoundTrip(half.As<uint32_t>());
    if (!std::isnan(value.As<double>())) ExpectRoundTrip(value.As<double>());
    if (!std::isnan(half.As<float>())) ExpectRoundTrip(half.As<float>());
  }
}

template <class T>
void ExpectAllRoundTrip() {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const T number = T::FromBits(static_cast<uint16_t>(bits));
    if (!std::isnan(number)) ExpectRoundTrip(number);
  }
}

TEST(FormatNumber, EveryValueOf16BitsReadsBack) {
  ExpectAllRoundTrip<Float16>();
  ExpectAllRoundTrip<BFloat16>();
}

TEST(FormatNumber, IsShortAndPlain) {
  EXPECT_EQ(FormatNumber(DType::kF16, Value::Of(Float16(0.1f))), "0.1");
  EXPECT_EQ(FormatNumber(DType::kF16, Value::Of(Float16(2049.0f))), "2048");
  EXPECT_EQ(FormatNumber(DType::kF16, Value::Of(Float16(-0.0f))), "-0");
  EXPECT_EQ(FormatNumber(DType::kBF16, Value::Of(BFloat16(0.3f))), "0.3");
  EXPECT_EQ(FormatNumber(DType::kBF16, Value::Of(-std::numeric_limits<BFloat16>::infinity())), "-inf");
  EXPECT_EQ(FormatNumber(DType::kBF16, Value::Of(std::numeric_limits<BFloat16>::quiet_NaN())), "nan");
  EXPECT_EQ(FormatNumber(DType::kF32, Value::Of(0.1f)), "0.1");
  EXPECT_EQ(FormatNumber(DType::kF64, Value::Of(-0.0)), "-0");
  EXPECT_EQ(FormatNumber(DType::kF64, Value::Of(-std::nan(""))), "nan");
  EXPECT_EQ(FormatNumber(DType::kF64, Value::Of(-std::numeric_limits<double>::infinity())), "-inf");
  EXPECT_EQ(FormatNumber(DType::kI32, Value::Of(int32_t{-5})), "-5");
  EXPECT_EQ(FormatNumber(DType::kU8, Value::Of(uint8_t{65})), "65");
  EXPECT_EQ(FormatNumber(DType::kF64, Value::Of(-std::numeric_limits<double>::denorm_min())), "-5e-324");
}

TEST(ParseSizes, NumbersPowersAndRanges) {
  const auto sizes = [](std::string_view text) { return ParseSizes(text).value(); };
  EXPECT_THAT(sizes("1000"), ElementsAre(1000));
  EXPECT_THAT(sizes("2^20,10^3,7"), ElementsAre(1048576, 1000, 7));
  EXPECT_THAT(sizes("1000,2^10..2^13"), ElementsAre(1000, 1024, 4096, 8192));
  EXPECT_THAT(sizes("1..16"), ElementsAre(1, 4, 16));
  EXPECT_THAT(sizes("5..5"), ElementsAre(5));
  EXPECT_THAT(sizes("2^63..18446744073709551615"), ElementsAre(uint64_t{1} << 63, ~uint64_t{0}));
}

TEST(ParseSizes, WhatIsNoneIsNamed) {
  for (const std::string_view text : {"", "0", "-5", "+5", "1e6", "1.5", " 1", "2^", "^2", "2^64", "2^99", "0^0",
                                      "2^3^4", "18446744073709551616", "1..", "..4", "4..1", "0..4", "1..2..3"}) {
    const auto sizes = ParseSizes(text);
    EXPECT_EQ(sizes.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(sizes.status().message()), HasSubstr(StrCat("'", text, "' is no size")));
  }
  EXPECT_THAT(std::string(ParseSizes("1,x\033,2").status().message()), HasSubstr("'x\\x1b' is no size"));
  EXPECT_FALSE(ParseSizes("1,").ok());
}

}  // namespace
}  // namespace prefixd::cli
