// How steps of linear recurrences combine, in vectors too.
#ifndef PREFIXD_KERNELS_CPU_SIMD_STEP_H_
#define PREFIXD_KERNELS_CPU_SIMD_STEP_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/pairs.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// One step after another, on vectors or single values. A term of -0 is none: so kNeutral changes nothing, on either
// side, whatever the coefficients are.
template <class T>
struct Follow {
  static constexpr Step<T> kNeutral = {T(1), T(-0.0)};

  template <class V>
  static PREFIXD_INLINE V ResultOf(Step<V> item) {
    return item.term;
  }
  template <class V>
  static PREFIXD_INLINE Step<V> Of(Step<V> before, Step<V> after) {
    return {before.coefficient * after.coefficient,
            IsNone(before.term) ? after.term : after.coefficient * before.term + after.term};
  }

 private:
  static PREFIXD_INLINE bool IsNone(T term) { return __builtin_bit_cast(Signed<T>, term) == kNone; }
  static PREFIXD_INLINE auto IsNone(Vector<T> terms) { return reinterpret_cast<Vector<Signed<T>>>(terms) == kNone; }

  static constexpr auto kNone = static_cast<Signed<T>>(Unsigned<T>{1} << (8 * sizeof(T) - 1));  // The bits of -0.
};

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_STEP_H_
