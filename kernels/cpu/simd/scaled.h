// Scaled exponentials in vectors.
#ifndef PREFIXD_KERNELS_CPU_SIMD_SCALED_H_
#define PREFIXD_KERNELS_CPU_SIMD_SCALED_H_

#include "kernels/cpu/simd/vector.h"
#include "kernels/log_add_exp.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

template <class T>
PREFIXD_INLINE Scaled<Vector<T>> Splat(Scaled<T> v) {
  return {Splat(v.sum), Splat(v.exponent)};
}

template <auto kFrom, class V>
PREFIXD_INLINE Scaled<V> Shuffle(Scaled<V> a, Scaled<V> b) {
  return {Shuffle<kFrom>(a.sum, b.sum), Shuffle<kFrom>(a.exponent, b.exponent)};
}

template <class V>
PREFIXD_INLINE Scaled<Lane<V>> LaneAt(Scaled<V> v, int lane) {
  return {LaneAt(v.sum, lane), LaneAt(v.exponent, lane)};
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_SCALED_H_
