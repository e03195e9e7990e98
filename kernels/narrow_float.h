// Floats of 16 bits as elements: f16 (binary16 of IEEE 754) and bf16 (the upper half of an f32). They are kept in 16
// bits and computed with as f32, which has all of their values.
//
//   Float16 third(1.0f / 3.0f);   // Rounded to nearest, ties to even.
//   float x = third;              // Exact. So arithmetic and comparisons are those of f32.
//
// A conversion rounds once, whatever it is from, and a NaN comes out canonical. Devices convert by their own
// instructions where they have them; the functions here are for those without, on single values and vectors alike.
// Everything here is a value: no threads, no ownership.
#ifndef PREFIXD_KERNELS_NARROW_FLOAT_H_
#define PREFIXD_KERNELS_NARROW_FLOAT_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/inline_anywhere.h"
#include "kernels/same_bytes.h"

namespace prefixd {
namespace narrow_float {

// kFractionBits: 10 of f16, 7 of bf16. V: float or a vector of them; Bits: uint32_t, or as many of them.
template <int kFractionBits, class V, class Bits>
PREFIXD_INLINE_ANYWHERE V Widened(Bits bits) {
  if constexpr (kFractionBits == 7) {
    return SameBytes<V>(bits << 16);
  } else {
    const Bits magnitude = (bits & 0x7fff) << 13;
    // The product is exact, of the smallest numbers too, and moves the exponent to where f32 has it.
    const Bits number = SameBytes<Bits>(SameBytes<V>(magnitude) * 0x1p112f);
    const Bits widened = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : number;  // Infinities and NaNs.
    return SameBytes<V>(widened | ((bits & 0x8000) << 16));
  }
}

// To nearest, ties to even; a NaN becomes the canonical one.
template <int kFractionBits, class V, class Bits>
PREFIXD_INLINE_ANYWHERE Bits Narrowed(V x) {
  constexpr int kCut = 23 - kFractionBits;  // Bits of an f32's fraction that go.
  const Bits bits = SameBytes<Bits>(x);
  const Bits magnitude = bits & 0x7fffffff;
  const Bits to_nearest = magnitude + ((1u << (kCut - 1)) - 1) + ((magnitude >> kCut) & 1);
  Bits narrow;
  if constexpr (kFractionBits == 7) {
    narrow = to_nearest >> kCut;
  } else {
    const Bits number = (to_nearest - (112u << 23)) >> kCut;
    // The last place of a sum with 1/2 is that of the smallest f16, 2^-24: the addition rounds.
    const Bits small = SameBytes<Bits>(SameBytes<V>(magnitude) + 0.5f) - 0x3f000000u;
    narrow = magnitude < 0x38800000u ? small : number;                // Below 2^-14.
    narrow = magnitude >= 0x477ff000u ? (Bits{} + 0x7c00u) : narrow;  // From 65520 on: infinity.
  }
  constexpr uint32_t kNan = kFractionBits == 7 ? 0x7fc0 : 0x7e00;
  return magnitude > 0x7f800000u ? (Bits{} + kNan) : (narrow | ((bits >> 16) & 0x8000));
}

// x as an f32 whose last bit is set if it is not exact: what is rounded then is rounded as x itself.
PREFIXD_INLINE_ANYWHERE float ToOdd(double x) {
  const auto nearest = static_cast<float>(x);
  const auto back = static_cast<double>(nearest);
  const auto bits = SameBytes<uint32_t>(nearest);
  if (back == x || x != x || (bits & 1) != 0) return nearest;
  const bool is_below = (back < x) == (x > 0);  // In magnitude.
  return SameBytes<float>(is_below ? bits + 1 : bits - 1);
}

template <class Integer>
PREFIXD_INLINE_ANYWHERE float ToOdd(Integer x) requires std::is_integral_v<Integer> {
  if constexpr (sizeof(Integer) <= 2) {
    return static_cast<float>(x);
  } else if constexpr (sizeof(Integer) == 4) {
    return ToOdd(static_cast<double>(x));
  } else {
    const bool is_negative = std::is_signed_v<Integer> && static_cast<int64_t>(x) < 0;
    const auto magnitude = is_negative ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    const uint64_t cut = (magnitude >> 11) | ((magnitude & 0x7ff) != 0 ? 1 : 0);  // 53 bits, the last for all behind.
    const double exact = magnitude >> 53 == 0 ? static_cast<double>(magnitude) : static_cast<double>(cut) * 2048.0;
    return ToOdd(is_negative ? -exact : exact);
  }
}

}  // namespace narrow_float

template <int kFractionBits>
struct NarrowFloat {
  static constexpr int kFraction = kFractionBits;

  uint16_t bits;

  NarrowFloat() = default;
  PREFIXD_INLINE_ANYWHERE explicit NarrowFloat(float x) : bits(BitsOf(x)) {}
  PREFIXD_INLINE_ANYWHERE explicit NarrowFloat(double x) : bits(BitsOf(narrow_float::ToOdd(x))) {}
  template <class Integer>
  requires std::is_integral_v<Integer> PREFIXD_INLINE_ANYWHERE explicit NarrowFloat(Integer x)
      : bits(BitsOf(narrow_float::ToOdd(x))) {}
  template <int kOther>
  requires(kOther != kFractionBits) PREFIXD_INLINE_ANYWHERE explicit NarrowFloat(NarrowFloat<kOther> x)
      : bits(BitsOf(static_cast<float>(x))) {}

  static constexpr NarrowFloat FromBits(uint16_t bits) {
    NarrowFloat x{};
    x.bits = bits;
    return x;
  }

  PREFIXD_INLINE_ANYWHERE operator float() const {  // NOLINT(google-explicit-constructor): it is exact.
#if defined(__CUDA_ARCH__)
    float widened;
    if constexpr (kFractionBits == 10) {
      asm("cvt.f32.f16 %0, %1;" : "=f"(widened) : "h"(bits));
    } else {
      asm("mov.b32 %0, {%1, %2};" : "=f"(widened) : "h"(uint16_t{0}), "h"(bits));  // One instruction from a pair.
    }
    return widened;
#else
    return narrow_float::Widened<kFractionBits, float>(uint32_t{bits});
#endif
  }
  PREFIXD_INLINE_ANYWHERE NarrowFloat operator-() const {
    NarrowFloat negated;
    negated.bits = bits ^ 0x8000;
    return negated;
  }

 private:
  static PREFIXD_INLINE_ANYWHERE uint16_t BitsOf(float x) {
#if defined(__CUDA_ARCH__)
    constexpr uint16_t kNan = kFractionBits == 7 ? 0x7fc0 : 0x7e00;
    uint16_t narrow;
    if constexpr (kFractionBits == 10) {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
      return x != x ? kNan : narrow;
    }
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow) : "f"(x));
    return x != x ? kNan : narrow;
#endif
#endif
    return static_cast<uint16_t>(narrow_float::Narrowed<kFractionBits, float, uint32_t>(x));
  }
};

using Float16 = NarrowFloat<10>;
using BFloat16 = NarrowFloat<7>;

template <class T>
inline constexpr bool kIsNarrowFloat = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type in which elements of T are combined, and their results rounded to T: of f16 and bf16 it is f32.
template <class T>
using Accumulator = std::conditional_t<kIsNarrowFloat<T>, float, T>;

}  // namespace prefixd

namespace std {

template <int kFractionBits>
class numeric_limits<prefixd::NarrowFloat<kFractionBits>> {
  using T = prefixd::NarrowFloat<kFractionBits>;
  static constexpr uint16_t kExponents = 0x7fff & ~((1 << kFractionBits) - 1);  // The bits of infinity.
  static constexpr int kBias = (1 << (14 - kFractionBits)) - 1;

 public:  // NOLINTBEGIN(readability-identifier-naming): the standard gives these names.
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_iec559 = true;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = kFractionBits + 1;
  static constexpr int digits10 = kFractionBits == 10 ? 3 : 2;
  static constexpr int max_digits10 = kFractionBits == 10 ? 5 : 4;

  static constexpr T infinity() { return T::FromBits(kExponents); }
  static constexpr T quiet_NaN() { return T::FromBits(kExponents | 1 << (kFractionBits - 1)); }
  static constexpr T max() { return T::FromBits(kExponents - 1); }
  static constexpr T lowest() { return T::FromBits(0x8000 | (kExponents - 1)); }
  static constexpr T min() { return T::FromBits(1 << kFractionBits); }
  static constexpr T denorm_min() { return T::FromBits(1); }
  static constexpr T epsilon() {
    return T::FromBits((kBias - kFractionBits) << kFractionBits);
  }  // NOLINTEND(readability-identifier-naming)
};

}  // namespace std

#endif  // PREFIXD_KERNELS_NARROW_FLOAT_H_
