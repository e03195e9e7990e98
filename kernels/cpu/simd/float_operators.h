// The operators whose results depend on the order, on vectors or single values of floats. Load makes an item of an
// element, Of combines items, and ResultOf makes a result of one.
#ifndef PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_
#define PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_

#include <type_traits>

#include "kernels/cpu/simd/vector.h"
#include "kernels/log_add_exp.h"
#include "kernels/types.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Combines elements by themselves.
struct OfElements {
  template <class V>
  static PREFIXD_INLINE V Load(V element) {
    return element;
  }
  template <class V>
  static PREFIXD_INLINE V ResultOf(V item) {
    return item;
  }
};

// `before op kNeutral` has the bits of `before`, and the other way round.
template <class T>
struct Plus : OfElements {
  static constexpr T kNeutral = T(-0.0);
  template <class V>
  static PREFIXD_INLINE V Of(V before, V after) {
    return before + after;
  }
};

template <class T>
struct Times : OfElements {
  static constexpr T kNeutral = T(1);
  template <class V>
  static PREFIXD_INLINE V Of(V before, V after) {
    return before * after;
  }
};

template <class T>
struct AddExp {
  template <class V>
  using Function = LogAddExp<T, V, std::conditional_t<std::is_same_v<V, T>, Unsigned<T>, Vector<Unsigned<T>>>>;

  static constexpr Scaled<T> kNeutral = {T(1), -T(__builtin_inf())};  // That of -infinity.
  template <class V>
  static PREFIXD_INLINE Scaled<V> Load(V element) {
    return Function<V>::Load(element);
  }
  template <class V>
  static PREFIXD_INLINE V ResultOf(Scaled<V> item) {
    return Function<V>::Store(item);
  }
  template <class V>
  static PREFIXD_INLINE Scaled<V> Of(Scaled<V> before, Scaled<V> after) {
    return Function<V>::Combine(before, after);
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
