// How sums and their errors are added, in vectors too.
#ifndef PREFIXD_KERNELS_CPU_SIMD_COMPENSATED_H_
#define PREFIXD_KERNELS_CPU_SIMD_COMPENSATED_H_

#include "kernels/cpu/simd/pairs.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

struct AddPairs {
  static constexpr Compensated<double> kNeutral = {-0.0, -0.0};
  template <class V>
  static PREFIXD_INLINE Compensated<V> Load(V element) {
    return CompensatedOf(element);
  }
  template <class V>
  static PREFIXD_INLINE V ResultOf(Compensated<V> item) {
    return Rounded(item);
  }
  template <class V>
  static PREFIXD_INLINE Compensated<V> Of(Compensated<V> before, Compensated<V> after) {
    return Add(before, after);
  }
};

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_COMPENSATED_H_
