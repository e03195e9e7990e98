// The operator log_add_exp, log(e^a + e^b), for all devices: the same operations in the same order, so the same bits.
//
//   using Lae = LogAddExp<float, float, uint32_t>;
//   float c = Lae::Store(Lae::Combine(Lae::Load(a), Lae::Load(b)));
//   using Laes = LogAddExp<double, Vector<double>, Vector<uint64_t>>;
//
// An element x is converted once, to e^x as a sum and an exponent; what is combined are those pairs, and a result is
// the logarithm of a pair. Both functions are polynomials. There is no table, no branch, no division, and no operation
// but those that IEEE 754 defines.
//   e^x      = 16^n 16^f, where n is a multiple of 1/4, next to x log16(e), and |f| <= 1/8
//   log(s)   = log(16) (e + log16(1 + z)), where s = 16^e (1 + z), e is a multiple of 1/4, and 1 + z next to 1
// An exponent of base 16 in quarters is one of base 2, and that of the largest number is a finite one, too. An infinite
// exponent is an infinite element's: -infinity changes nothing on either side, bit for bit. A sum that is a NaN is that
// of a NaN. Other sums are 2^-0.5 or more.
// Source: the reductions are textbook ones (Muller, Elementary Functions, 2016); the coefficients are Chebyshev fits.
#ifndef PREFIXD_KERNELS_LOG_ADD_EXP_H_
#define PREFIXD_KERNELS_LOG_ADD_EXP_H_

#include <cstdint>
#include <type_traits>

#include "kernels/inline_anywhere.h"
#include "kernels/same_bytes.h"

namespace prefixd {

// sum * 16^exponent. The exponent is a multiple of 1/4, or infinite.
template <class V>
struct Scaled {
  V sum;
  V exponent;
};

namespace log_add_exp {

// c0 + x * (c1 + x * (...)). Coefficients are scalars.
template <class V, class T>
PREFIXD_INLINE_ANYWHERE V Polynomial(V, T last) {
  return V{} + last;
}
template <class V, class T, class... Rest>
PREFIXD_INLINE_ANYWHERE V Polynomial(V x, T first, Rest... rest) {
  return first + x * Polynomial(x, rest...);
}

// 16^f - 1, for |f| <= 1/8.
template <class T, class V>
PREFIXD_INLINE_ANYWHERE V PowerLessOne(V f) {
  if constexpr (sizeof(T) == 4) {
    return f *
           Polynomial(f, 0x1.62e43p+1F, 0x1.ebfbep+1F, 0x1.c6af6cp+1F, 0x1.3b2a54p+1F, 0x1.5f089p+0F, 0x1.44138ap-1F);
  } else {
    return f * Polynomial(f, 0x1.62e42fefa39efp+1, 0x1.ebfbdff82c598p+1, 0x1.c6b08d704a0c2p+1, 0x1.3b2ab6fba1ddap+1,
                          0x1.5d87fe78a5276p+0, 0x1.430913096fd9fp-1, 0x1.ffcbfc670dcd4p-3, 0x1.62bfd47773353p-4,
                          0x1.b524fae627834p-6, 0x1.e6063f7217bc6p-8, 0x1.e9d3fe3952179p-10);
  }
}

// log16(1 + z), for z from sqrt(1/2) - 1 to sqrt(2) - 1.
template <class T, class V>
PREFIXD_INLINE_ANYWHERE V LogOfOneAnd(V z) {
  if constexpr (sizeof(T) == 4) {
    return z * Polynomial(z, 0x1.715476p-2F, -0x1.715474p-3F, 0x1.ec73dep-4F, -0x1.715994p-4F, 0x1.26d01cp-4F,
                          -0x1.e9d1e6p-5F, 0x1.ba8738p-5F, -0x1.a59aeap-5F, 0x1.f841dcp-6F);
  } else {
    return z * Polynomial(z, 0x1.71547652b82fep-2, -0x1.71547652b82f4p-3, 0x1.ec709dc39fc74p-4, -0x1.71547652ba51ap-4,
                          0x1.2776c50f7c433p-4, -0x1.ec709dc20d507p-5, 0x1.a617623a5e3d6p-5, -0x1.7154765123e15p-5,
                          0x1.484b2ab9ba449p-5, -0x1.2776ddd7eb0a2p-5, 0x1.0c97de6f5ec28p-5, -0x1.ec66464de5dp-6,
                          0x1.c6e78db7877b7p-6, -0x1.a7103f0dd8341p-6, 0x1.870314282b4fp-6, -0x1.65363f6a2c57ap-6,
                          0x1.62b243d17d158p-6, -0x1.91722b1def7d4p-6, 0x1.7150983034b54p-6, -0x1.45f22244be4d4p-7);
  }
}

}  // namespace log_add_exp

// T: float or double. V: T, or a vector of T. Bits: the unsigned integers of V's size.
template <class T, class V, class Bits>
struct LogAddExp {
  using Item = Scaled<V>;

  // e^x.
  static PREFIXD_INLINE_ANYWHERE Item Load(V x) {
    constexpr T kLog16OfE = sizeof(T) == 4 ? T(0x1.715476p-2) : T(0x1.71547652b82fep-2);
    const V t = x * kLog16OfE;
    // Beside kQuarters of the same sign, t is rounded to quarters. Where it is as large, it is one.
    const V quarters = SameBytes<V>((SameBytes<Bits>(t) & kSign) | SameBytes<Word>(kQuarters));
    const V rounded = (t + quarters) - quarters;
    const auto is_large = Magnitude(t) >= kQuarters;
    const V f = is_large ? V{} : t - rounded;
    return {T(1) + log_add_exp::PowerLessOne<T, V>(f), is_large ? t : rounded};
  }

  // The larger exponent stays. What comes to less than half an ulp need not be as small as it is, so that nothing is
  // denormal.
  static PREFIXD_INLINE_ANYWHERE Item Combine(Item a, Item b) {
    const auto a_is_larger = a.exponent > b.exponent;
    const V larger = a_is_larger ? a.sum : b.sum;
    const V smaller = a_is_larger ? b.sum : a.sum;
    const V distance = Smaller(Magnitude(a.exponent - b.exponent), kFar);  // kFar, too, between equal infinities.
    return {AddProduct(larger, smaller, PowerOf16(-distance)), a_is_larger ? a.exponent : b.exponent};
  }

  // The logarithm.
  static PREFIXD_INLINE_ANYWHERE V Store(Item item) {
    constexpr Word kSqrtHalf = sizeof(T) == 4 ? Word(0x3f3504f3) : Word(0x3fe6a09e667f3bcd);
    constexpr T kLogOf16 = sizeof(T) == 4 ? T(0x1.62e43p+1) : T(0x1.62e42fefa39efp+1);
    constexpr T kNan = __builtin_nan("");
    const Bits bits = SameBytes<Bits>(item.sum) + (kOne - kSqrtHalf);
    const V mantissa = SameBytes<V>((bits & kMantissa) + kSqrtHalf);
    const V exponent = item.exponent + ExponentOf(bits);
    const V log = (exponent + log_add_exp::LogOfOneAnd<T, V>(mantissa - T(1))) * kLogOf16;
    if constexpr (std::is_same_v<V, T>) {
      return item.sum == item.sum ? log : kNan;  // Not by an addition: a GPU would make a NaN of its own.
    } else {
      return item.sum == item.sum ? log : V{} + kNan;
    }
  }

  // A pair as it goes into a carry or a state: the same on every device, whatever its exponent was brought to. A NaN is
  // the canonical one. The sum is from 1 to 2, unless the exponent is so large that what is moved there could round.
  static PREFIXD_INLINE_ANYWHERE Item Settled(Item item) requires(std::is_same_v<V, T>) {
    constexpr T kNan = __builtin_nan("");
    if (item.sum != item.sum) return {kNan, kNan};
    if (!(Magnitude(item.exponent) < kQuarters / 2)) return item;
    const Bits bits = SameBytes<Bits>(item.sum);
    return {SameBytes<V>((bits & kMantissa) | kOne), item.exponent + ExponentOf(bits)};
  }

  // For exponents from -kFar to 0; 0 for -infinity.
  static PREFIXD_INLINE_ANYWHERE V PowerOf16(V exponent) {
    // The shift leaves the biased exponent of the power alone.
    const V biased = (T(1.5) * kQuarters + T(kBias) / 4) + exponent;
    return SameBytes<V>(SameBytes<Bits>(biased) << kMantissaBits);
  }

  // a + b * power. The product by a power of two is exact where it is no denormal, so that a fused operation rounds as
  // the two do.
  static PREFIXD_INLINE_ANYWHERE V AddProduct(V a, V b, V power) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 4) {
      return __fmaf_rn(b, power, a);
    } else {
      return __fma_rn(b, power, a);
    }
#else
    return a + b * power;
#endif
  }

 private:
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr int kMantissaBits = sizeof(T) == 4 ? 23 : 52;
  static constexpr int kBias = sizeof(T) == 4 ? 127 : 1023;
  static constexpr T kQuarters = sizeof(T) == 4 ? T(0x1p21) : T(0x1p50);  // Whose ulp is a quarter.
  static constexpr T kFar = T(kBias - 7) / 4;
  static constexpr Word kSign = Word(1) << (8 * sizeof(T) - 1);
  static constexpr Word kOne = Word(kBias) << kMantissaBits;  // The bits of 1.
  static constexpr Word kMantissa = (Word(1) << kMantissaBits) - 1;

  static PREFIXD_INLINE_ANYWHERE V Magnitude(V v) {
    if constexpr (std::is_same_v<V, float>) {
      return __builtin_fabsf(v);  // On a GPU it is a part of the next instruction.
    } else if constexpr (std::is_same_v<V, double>) {
      return __builtin_fabs(v);
    } else {
      return SameBytes<V>(SameBytes<Bits>(v) & ~kSign);
    }
  }
  // The exponent, to the base 16, of the number that has these bits.
  static PREFIXD_INLINE_ANYWHERE V ExponentOf(Bits bits) {
    return SameBytes<V>((bits >> kMantissaBits) | SameBytes<Word>(kQuarters)) - (kQuarters + T(kBias) / 4);
  }
  static PREFIXD_INLINE_ANYWHERE V Smaller(V a, T b) { return a < b ? a : V{} + b; }
};

// On single values.
template <class T>
using LogAddExpOf = LogAddExp<T, T, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class T>
PREFIXD_INLINE_ANYWHERE Scaled<T> Settled(Scaled<T> item) {
  return LogAddExpOf<T>::Settled(item);
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_LOG_ADD_EXP_H_
