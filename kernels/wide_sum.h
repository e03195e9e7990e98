// Sums of doubles in twice their precision, for all devices: the same operations in the same order, so the same bits.
//
//   Compensated<double> sum = Add(CompensatedOf(a), CompensatedOf(b));
//   double nearest = Rounded(sum);
//
// V: double, or a vector of doubles. Beside a sum as it rounds stands what was rounded away. That is exact of one
// addition, so that after k of them on the way of any element the whole is off by (k 2^-53)^2 of the sum of magnitudes.
// Source: Knuth, The Art of Computer Programming 2, 4.2.2, for the error of a sum; Ogita, Rump and Oishi 2005, Accurate
// Sum and Dot Product, for the bound.
#ifndef PREFIXD_KERNELS_WIDE_SUM_H_
#define PREFIXD_KERNELS_WIDE_SUM_H_

#include "kernels/inline_anywhere.h"

namespace prefixd {

// The plain sum, and what it lacks; no number where the sum is not finite.
template <class V>
struct Compensated {
  V sum;
  V error;
};

// -0: nothing is added to the error of what it is added to. A sum of -0 changes nothing, on either side.
template <class V>
PREFIXD_INLINE_ANYWHERE Compensated<V> CompensatedOf(V x) {
  return {x, -0.0 - V{}};
}

template <class V>
PREFIXD_INLINE_ANYWHERE Compensated<V> Add(Compensated<V> a, Compensated<V> b) {
  const V sum = a.sum + b.sum;
  const V of_b = sum - a.sum;
  const V error = (a.sum - (sum - of_b)) + (b.sum - of_b);
  return {sum, error + (a.error + b.error)};
}

template <class V>
PREFIXD_INLINE_ANYWHERE V Rounded(Compensated<V> v) {
  const V zero = {};
  return ((v.error < zero) | (v.error > zero)) ? v.sum + v.error : v.sum;  // A -0 stays, and so does an infinity.
}

// A pair as it goes into a carry or a state: the same on every device, whatever neutral ones were added on the way.
PREFIXD_INLINE_ANYWHERE Compensated<double> Settled(Compensated<double> v) {
  constexpr double kNan = __builtin_nan("");
  if (v.sum - v.sum != 0) return {v.sum == v.sum ? v.sum : kNan, kNan};
  return {v.sum, v.error + 0.0};  // Not -0.
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_WIDE_SUM_H_
