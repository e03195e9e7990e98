// The operators whose results depend on the order, on vectors or single values of floats.
#ifndef PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_
#define PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_

#include <type_traits>

#include "kernels/cpu/simd/vector.h"
#include "kernels/log_add_exp.h"
#include "kernels/types.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// `before op kNeutral` has the bits of `before`, and the other way round.
template <class T>
struct Plus {
  static constexpr T kNeutral = T(-0.0);
  template <class V>
  static PREFIXD_INLINE V Of(V before, V after) {
    return before + after;
  }
};

template <class T>
struct Times {
  static constexpr T kNeutral = T(1);
  template <class V>
  static PREFIXD_INLINE V Of(V before, V after) {
    return before * after;
  }
};

template <class T>
struct AddExp {
  static constexpr T kNeutral = -T(__builtin_inf());
  template <class V>
  static PREFIXD_INLINE V Of(V before, V after) {
    using Bits = std::conditional_t<std::is_same_v<V, T>, Unsigned<T>, Vector<Unsigned<T>>>;
    return LogAddExp<T, V, Bits>(before, after);
  }
};

template <Op kOp, class T>
constexpr auto FloatOperatorOf() {
  if constexpr (kOp == Op::kSum) {
    return Plus<T>{};
  } else if constexpr (kOp == Op::kProd) {
    return Times<T>{};
  } else {
    static_assert(kOp == Op::kLogAddExp);
    return AddExp<T>{};
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_
