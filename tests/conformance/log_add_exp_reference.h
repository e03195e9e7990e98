// log_add_exp as kernels/NUMERICS.md has it, from its formulas and coefficients: elements become exponentials, which
// are combined, and the logarithm of one is a result.
#ifndef PREFIXD_TESTS_CONFORMANCE_LOG_ADD_EXP_REFERENCE_H_
#define PREFIXD_TESTS_CONFORMANCE_LOG_ADD_EXP_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace prefixd::conformance {

// What elements combine to: one of them, or of log_add_exp value * 16^exponent.
template <class T>
struct Accumulated {
  T value;
  T exponent = 0;
};

struct LogAddExpNumbers {
  double c, l, far, half, large;
  std::vector<double> p, q;  // The lowest coefficient first.
};
template <class T>
const LogAddExpNumbers& LogAddExpNumbersOf() {
  static const LogAddExpNumbers of_f32 = {
      0x1.715476p-2,
      0x1.62e43p+1,
      30,
      0x1.6a09e6p-1,
      0x1p21,
      {0x1.62e43p+1, 0x1.ebfbep+1, 0x1.c6af6cp+1, 0x1.3b2a54p+1, 0x1.5f089p+0, 0x1.44138ap-1},
      {0x1.715476p-2, -0x1.715474p-3, 0x1.ec73dep-4, -0x1.715994p-4, 0x1.26d01cp-4, -0x1.e9d1e6p-5, 0x1.ba8738p-5,
       -0x1.a59aeap-5, 0x1.f841dcp-6}};
  static const LogAddExpNumbers of_f64 = {
      0x1.71547652b82fep-2,
      0x1.62e42fefa39efp+1,
      254,
      0x1.6a09e667f3bcdp-1,
      0x1p50,
      {0x1.62e42fefa39efp+1, 0x1.ebfbdff82c598p+1, 0x1.c6b08d704a0c2p+1, 0x1.3b2ab6fba1ddap+1, 0x1.5d87fe78a5276p+0,
       0x1.430913096fd9fp-1, 0x1.ffcbfc670dcd4p-3, 0x1.62bfd47773353p-4, 0x1.b524fae627834p-6, 0x1.e6063f7217bc6p-8,
       0x1.e9d3fe3952179p-10},
      {0x1.71547652b82fep-2, -0x1.71547652b82f4p-3, 0x1.ec709dc39fc74p-4, -0x1.71547652ba51ap-4,
       0x1.2776c50f7c433p-4, -0x1.ec709dc20d507p-5, 0x1.a617623a5e3d6p-5, -0x1.7154765123e15p-5,
       0x1.484b2ab9ba449p-5, -0x1.2776ddd7eb0a2p-5, 0x1.0c97de6f5ec28p-5, -0x1.ec66464de5dp-6,
       0x1.c6e78db7877b7p-6, -0x1.a7103f0dd8341p-6, 0x1.870314282b4fp-6,  -0x1.65363f6a2c57ap-6,
       0x1.62b243d17d158p-6, -0x1.91722b1def7d4p-6, 0x1.7150983034b54p-6, -0x1.45f22244be4d4p-7}};
  return sizeof(T) == 4 ? of_f32 : of_f64;
}

template <class T>
T PolynomialOf(const std::vector<double>& coefficients, T x) {
  T value = 0;
  for (size_t i = coefficients.size(); i-- > 0;) value = static_cast<T>(coefficients[i]) + x * value;
  return value;
}

template <class T>
Accumulated<T> ExponentialOf(T x) {
  const LogAddExpNumbers& numbers = LogAddExpNumbersOf<T>();
  if (std::isnan(x)) return {x, x};
  const T t = x * static_cast<T>(numbers.c);
  if (std::fabs(t) >= static_cast<T>(numbers.large)) return {1, t};
  const T n = std::nearbyint(4 * t) / 4, f = t - n;
  return {1 + f * PolynomialOf(numbers.p, f), n + T{0}};  // Not -0.
}

template <class T>
Accumulated<T> SumOf(Accumulated<T> a, Accumulated<T> b) {
  if (std::isnan(a.value)) return a;
  if (std::isnan(b.value)) return b;
  if (a.exponent < b.exponent) std::swap(a, b);
  const T far = static_cast<T>(LogAddExpNumbersOf<T>().far);
  const T distance = std::isinf(a.exponent) || std::isinf(b.exponent) ? far : std::min(a.exponent - b.exponent, far);
  return {a.value + std::ldexp(b.value, -static_cast<int>(4 * distance)), a.exponent};
}

template <class T>
T LogarithmOf(Accumulated<T> item) {
  const LogAddExpNumbers& numbers = LogAddExpNumbersOf<T>();
  if (std::isnan(item.value)) return item.value;
  int e = 0;
  T m = std::frexp(item.value, &e);
  if (m < static_cast<T>(numbers.half)) {
    m *= 2;
    --e;
  }
  const T z = m - 1;
  return ((item.exponent + static_cast<T>(e) / 4) + z * PolynomialOf(numbers.q, z)) * static_cast<T>(numbers.l);
}

// As it goes into a carry.
template <class T>
Accumulated<T> SettledOf(Accumulated<T> item) {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(item.value)) return {kNan, kNan};
  if (std::fabs(item.exponent) >= static_cast<T>(LogAddExpNumbersOf<T>().large / 2)) return item;
  const int e = std::ilogb(item.value);
  return {std::ldexp(item.value, -e), item.exponent + static_cast<T>(e) / 4};
}

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_LOG_ADD_EXP_REFERENCE_H_
