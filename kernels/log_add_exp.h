// The operator log_add_exp, log(e^a + e^b), for all devices: the same operations in the same order, so the same bits.
//
//   float c = LogAddExp<float, float, uint32_t>(a, b);
//   Vector<double> c = LogAddExp<double, Vector<double>, Vector<uint64_t>>(a, b);
//
// With d = |a - b| it is max(a, b) + log(1 + e^-d). Both functions are polynomials behind a reduction of their range;
// there is no table, no branch, and no operation but those that IEEE 754 defines, none of them fused.
//   e^-d        = 2^-n e^s, where n is the integer next to d / log(2), and |s| <= log(2) / 2
//   log(1 + t)  = 2 atanh(u), where u = t / (2 + t) <= 1/3
// The term that is added is off by 2 epsilon of itself at most; behind d = 87, or 708 for doubles, where e^-d leaves
// the normal numbers, nothing is added. -infinity changes nothing on either side, bit for bit; a NaN gives a NaN.
// Source: the reductions are textbook ones (Muller, Elementary Functions, 2016); the coefficients are Chebyshev fits.
#ifndef PREFIXD_KERNELS_LOG_ADD_EXP_H_
#define PREFIXD_KERNELS_LOG_ADD_EXP_H_

#include "kernels/inline_anywhere.h"
#include "kernels/same_bytes.h"

namespace prefixd {
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

// e^-d for d from 0 to kFarthest.
template <class T>
inline constexpr T kFarthest = sizeof(T) == 4 ? 87 : 708;

template <class T, class V, class Bits>
PREFIXD_INLINE_ANYWHERE V ExpOfMinus(V d) {
  // Adding kRound leaves the integer next to d / log(2) in the low bits.
  constexpr int kMantissaBits = sizeof(T) == 4 ? 23 : 52;
  constexpr T kRound = sizeof(T) == 4 ? T(0x1.8p23) : T(0x1.8p52);
  constexpr T kLog2e = sizeof(T) == 4 ? T(0x1.715476p+0) : T(0x1.71547652b82fep+0);
  // log(2) in two parts; n times the first one is exact.
  constexpr T kLn2 = sizeof(T) == 4 ? T(0x1.62e4p-1) : T(0x1.62e42fefa3p-1);
  constexpr T kLn2Rest = sizeof(T) == 4 ? T(0x1.7f7d1cp-20) : T(0x1.3de6af278ece6p-42);
  const V rounded = d * kLog2e + kRound;
  const V n = rounded - kRound;
  const V s = (n * kLn2 - d) + n * kLn2Rest;
  V q;
  if constexpr (sizeof(T) == 4) {
    q = Polynomial(s, 0x1.0p-1F, 0x1.5554dcp-3F, 0x1.55551ap-5F, 0x1.120b6ep-7F, 0x1.6d110ap-10F);
  } else {
    q = Polynomial(s, 0x1.0p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dcp-7, 0x1.6c16c16c162d4p-10,
                   0x1.a01a01abe7fe1p-13, 0x1.a01a01a6d889cp-16, 0x1.71de0231960ebp-19, 0x1.27e4db646b17ep-22,
                   0x1.af4de97ca4194p-26, 0x1.1f730349868cep-29);
  }
  const V e = T(1) + (s + s * s * q);
  // The shift leaves n alone, where the exponent is: the other bits of kRound are gone.
  return SameBytes<V>(SameBytes<Bits>(e) - (SameBytes<Bits>(rounded) << kMantissaBits));
}

// log(1 + t) for t from 0 to 1.
template <class T, class V>
PREFIXD_INLINE_ANYWHERE V LogOfOnePlus(V t) {
  const V u = t / (T(2) + t);
  const V w = u * u;
  V p;
  if constexpr (sizeof(T) == 4) {
    p = Polynomial(w, 0x1.555556p-2F, 0x1.9998d4p-3F, 0x1.24c926p-3F, 0x1.bc8cf8p-4F, 0x1.dba26p-4F);
  } else {
    p = Polynomial(w, 0x1.5555555555555p-2, 0x1.999999999a3ddp-3, 0x1.24924923d44c6p-3, 0x1.c71c727143318p-4,
                   0x1.745cf0b0e03bdp-4, 0x1.3b18b294bebf9p-4, 0x1.10ac75dc602b1p-4, 0x1.eb905e8575054p-5,
                   0x1.687a6e7c95176p-5, 0x1.4b0a26c5f2aefp-4);
  }
  const V twice = u + u;
  return twice + twice * (w * p);
}

}  // namespace log_add_exp

// T: float or double. V: T, or a vector of T. Bits: the unsigned integers of V's size.
template <class T, class V, class Bits>
PREFIXD_INLINE_ANYWHERE V LogAddExp(V a, V b) {
  using log_add_exp::kFarthest;
  const V zero = {};
  const V none = T(-0.0) - zero;  // Added to a number, it changes no bit.
  const V larger = a > b ? a : b;
  const V distance = larger - (a > b ? b : a);  // A NaN where one is a NaN, or both are the same infinity.
  const V d = distance < kFarthest<T> ? distance : zero;
  const V more = log_add_exp::LogOfOnePlus<T, V>(log_add_exp::ExpOfMinus<T, V, Bits>(d));
  const V sum = larger + (distance < kFarthest<T> ? more : none);
  return a == a ? sum : a;  // Where b is a NaN, it is the larger.
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_LOG_ADD_EXP_H_
