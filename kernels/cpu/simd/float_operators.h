// The operators whose results depend on the order: sums and products of floats, on vectors or single values.
#ifndef PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_
#define PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_

#include "kernels/cpu/simd/vector.h"

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

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_FLOAT_OPERATORS_H_
