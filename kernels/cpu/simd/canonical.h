// The canonical NaN, the only one that leaves a device.
#ifndef PREFIXD_KERNELS_CPU_SIMD_CANONICAL_H_
#define PREFIXD_KERNELS_CPU_SIMD_CANONICAL_H_

#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

template <class T>
constexpr T kNan = sizeof(T) == 4 ? static_cast<T>(__builtin_nanf("")) : static_cast<T>(__builtin_nan(""));

// Any NaN, in a vector or alone, as the canonical one; anything else as it is.
template <class V>
PREFIXD_INLINE V Canonical(V v) {
  if constexpr (std::is_floating_point_v<V>) {
    return v == v ? v : kNan<V>;
  } else if constexpr (!std::is_arithmetic_v<V>) {
    if constexpr (std::is_floating_point_v<Lane<V>>) v = v == v ? v : Splat(kNan<Lane<V>>);
  }
  return v;
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_CANONICAL_H_
