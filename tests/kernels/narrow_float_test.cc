// f16 and bf16 against their definition: every value, and every place where rounding turns.
#include "kernels/narrow_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace prefixd {
namespace {

template <class T>
class NarrowFloatTest : public testing::Test {
 protected:
  static constexpr int kFraction = T::kFraction;
  static constexpr int kExponents = 15 - kFraction;
  static constexpr int kBias = (1 << (kExponents - 1)) - 1;
  static constexpr uint32_t kInfinity = ((1u << kExponents) - 1) << kFraction;

  // What the bits mean. Not for infinities and NaNs, but where infinity would stand if it were a number.
  static double Meaning(uint32_t magnitude) {
    const int exponent = static_cast<int>(magnitude >> kFraction);
    const double fraction = magnitude & ((1u << kFraction) - 1);
    if (exponent == 0) return std::ldexp(fraction, 1 - kBias - kFraction);
    return std::ldexp(fraction + std::ldexp(1.0, kFraction), exponent - kBias - kFraction);
  }
};

using Types = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(NarrowFloatTest, Types);

TYPED_TEST(NarrowFloatTest, EveryValueIsWhatItsBitsMean) {
  using T = TypeParam;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto x = static_cast<float>(T::FromBits(static_cast<uint16_t>(bits)));
    const uint32_t magnitude = bits & 0x7fff;
    ASSERT_EQ(std::signbit(x), bits >= 0x8000) << bits;
    if (magnitude > TestFixture::kInfinity) {
      ASSERT_TRUE(std::isnan(x)) << bits;
      ASSERT_EQ(T(x).bits, std::numeric_limits<T>::quiet_NaN().bits) << bits;
      continue;
    }
    const double meaning =
        magnitude == TestFixture::kInfinity ? std::numeric_limits<double>::infinity() : TestFixture::Meaning(magnitude);
    ASSERT_EQ(std::abs(x), meaning) << bits;
    ASSERT_EQ(T(x).bits, bits);
    ASSERT_EQ(T(static_cast<double>(x)).bits, bits);
    ASSERT_EQ(static_cast<float>(-T::FromBits(static_cast<uint16_t>(bits))), -x);
  }
}

// Between two neighbours, the last of which may be infinity: just above the first, just below the middle, the middle,
// just above it, just below the second. As floats, and as doubles, which come nearer.
TYPED_TEST(NarrowFloatTest, RoundsToNearestTiesToEven) {
  using T = TypeParam;
  for (uint32_t low = 0; low < TestFixture::kInfinity; ++low) {
    const double a = TestFixture::Meaning(low), b = TestFixture::Meaning(low + 1);
    const double middle = a + (b - a) / 2;
    const uint32_t even = low % 2 == 0 ? low : low + 1;
    const auto expect = [&](auto x, uint32_t bits) {
      ASSERT_EQ(T(x).bits, bits) << x << " as " << sizeof(x) << " bytes";
      ASSERT_EQ(T(-x).bits, bits | 0x8000) << -x;
    };
    for (const bool as_float : {true, false}) {
      const auto next = [&](double x, double to) {
        return as_float ? static_cast<double>(std::nextafter(static_cast<float>(x), static_cast<float>(to)))
                        : std::nextafter(x, to);
      };
      const auto check = [&](double x, uint32_t bits) {
        as_float ? expect(static_cast<float>(x), bits) : expect(x, bits);
      };
      check(a, low);
      check(next(a, b), low);
      check(next(middle, a), low);
      check(middle, even);
      check(next(middle, b), low + 1);
      if (low + 1 < TestFixture::kInfinity) check(next(b, a), low + 1);
      if (this->HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(NarrowFloatTest, WhatIsTooLargeIsInfinity) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  for (const double x : {1e39, 1e300, std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(T(x).bits, Limits::infinity().bits) << x;
    EXPECT_EQ(T(-x).bits, (-Limits::infinity()).bits) << x;
    EXPECT_EQ(T(static_cast<float>(x)).bits, Limits::infinity().bits) << x;
  }
  EXPECT_EQ(T(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_EQ(T(-std::numeric_limits<double>::denorm_min()).bits, 0x8000);
  EXPECT_EQ(T(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
  EXPECT_EQ(T(std::nan("")).bits, Limits::quiet_NaN().bits);
  EXPECT_EQ(T(-std::nanf("17")).bits, Limits::quiet_NaN().bits);
}

// An integer halfway between two values, and its neighbours, which an f64 does not tell apart.
TYPED_TEST(NarrowFloatTest, IntegersAreRoundedOnce) {
  using T = TypeParam;
  const int digits = TestFixture::kFraction + 1;
  for (int exponent = digits; exponent < 63; ++exponent) {
    for (const uint64_t fraction : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << TestFixture::kFraction) - 1}) {
      const uint64_t low = ((uint64_t{1} << TestFixture::kFraction) | fraction) << (exponent - digits + 1);
      const uint64_t half = uint64_t{1} << (exponent - digits);
      const auto value = [](uint64_t x) {  // The integers here are exact as doubles.
        return T(static_cast<double>(x)).bits;
      };
      const uint16_t below = value(low), above = value(low + 2 * half);
      EXPECT_EQ(T(low + half).bits, fraction % 2 == 0 ? below : above) << low;
      EXPECT_EQ(T(low + half + 1).bits, above) << low;
      EXPECT_EQ(T(low + half - 1).bits, below) << low;
      EXPECT_EQ(T(-static_cast<int64_t>(low + half + 1)).bits, above | 0x8000) << low;
      if (exponent < 31) {
        EXPECT_EQ(T(static_cast<uint32_t>(low + half + 1)).bits, above) << low;
        EXPECT_EQ(T(-static_cast<int32_t>(low + half + 1)).bits, above | 0x8000) << low;
      }
    }
  }
  for (int i = -32768; i < 65536; ++i) {
    ASSERT_EQ(T(i).bits, T(static_cast<float>(i)).bits) << i;
    if (i < 32768) {
      ASSERT_EQ(T(static_cast<int16_t>(i)).bits, T(static_cast<float>(i)).bits) << i;
    }
    if (i >= 0) {
      ASSERT_EQ(T(static_cast<uint16_t>(i)).bits, T(static_cast<float>(i)).bits) << i;
    }
  }
  const double largest = static_cast<double>(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(T(std::numeric_limits<uint64_t>::max()).bits, T(largest).bits);
  EXPECT_EQ(T(std::numeric_limits<int64_t>::min()).bits, T(-std::ldexp(1.0, 63)).bits);
}

TYPED_TEST(NarrowFloatTest, LimitsAreThoseOfTheFormat) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(Limits::infinity().bits, TestFixture::kInfinity);
  EXPECT_EQ(static_cast<float>(Limits::max()), TestFixture::Meaning(TestFixture::kInfinity - 1));
  EXPECT_EQ(static_cast<float>(Limits::lowest()), -TestFixture::Meaning(TestFixture::kInfinity - 1));
  EXPECT_EQ(static_cast<float>(Limits::min()), std::ldexp(1.0, 1 - TestFixture::kBias));
  EXPECT_EQ(static_cast<float>(Limits::denorm_min()), TestFixture::Meaning(1));
  EXPECT_EQ(static_cast<float>(Limits::epsilon()), std::ldexp(1.0, -TestFixture::kFraction));
  EXPECT_TRUE(std::isnan(static_cast<float>(Limits::quiet_NaN())));
}

TEST(NarrowFloatTypesTest, TheirAccumulatorsAreSingle) {
  static_assert(std::is_same_v<Accumulator<Float16>, float>);
  static_assert(std::is_same_v<Accumulator<BFloat16>, float>);
  static_assert(std::is_same_v<Accumulator<double>, double>);
  static_assert(std::is_same_v<Accumulator<int8_t>, int8_t>);
  static_assert(std::is_trivially_copyable_v<Float16> && sizeof(Float16) == 2 && alignof(Float16) == 2);
  EXPECT_EQ(BFloat16(Float16(1.5f)).bits, 0x3fc0);
  EXPECT_EQ(Float16(BFloat16(65536.0f)).bits, std::numeric_limits<Float16>::infinity().bits);
}

}  // namespace
}  // namespace prefixd
