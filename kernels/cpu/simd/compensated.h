// Sums and their errors in vectors, and how they are added.
#ifndef PREFIXD_KERNELS_CPU_SIMD_COMPENSATED_H_
#define PREFIXD_KERNELS_CPU_SIMD_COMPENSATED_H_

#include "kernels/cpu/simd/vector.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

PREFIXD_INLINE Compensated<Vector<double>> Splat(Compensated<double> v) { return {Splat(v.sum), Splat(v.error)}; }

template <auto kFrom, class V>
PREFIXD_INLINE Compensated<V> Shuffle(Compensated<V> a, Compensated<V> b) {
  return {Shuffle<kFrom>(a.sum, b.sum), Shuffle<kFrom>(a.error, b.error)};
}

template <class V>
PREFIXD_INLINE Compensated<Lane<V>> LaneAt(Compensated<V> v, int lane) {
  return {LaneAt(v.sum, lane), LaneAt(v.error, lane)};
}

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
