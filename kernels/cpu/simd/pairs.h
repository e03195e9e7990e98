// Items of two values in vectors: steps, sums and their errors, scaled exponentials. A vector of them is a pair of
// vectors.
#ifndef PREFIXD_KERNELS_CPU_SIMD_PAIRS_H_
#define PREFIXD_KERNELS_CPU_SIMD_PAIRS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vector.h"
#include "kernels/log_add_exp.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

template <template <class> class Pair>
inline constexpr bool kIsPair = false;
template <>
inline constexpr bool kIsPair<Step> = true;
template <>
inline constexpr bool kIsPair<Compensated> = true;
template <>
inline constexpr bool kIsPair<Scaled> = true;

template <template <class> class Pair, class T>
requires kIsPair<Pair> PREFIXD_INLINE Pair<Vector<T>> Splat(Pair<T> v) {
  const auto [first, second] = v;
  return {Splat(first), Splat(second)};
}

template <auto kFrom, template <class> class Pair, class V>
requires kIsPair<Pair> PREFIXD_INLINE Pair<V> Shuffle(Pair<V> a, Pair<V> b) {
  const auto [first_a, second_a] = a;
  const auto [first_b, second_b] = b;
  return {Shuffle<kFrom>(first_a, first_b), Shuffle<kFrom>(second_a, second_b)};
}

template <template <class> class Pair, class V>
requires kIsPair<Pair> PREFIXD_INLINE Pair<Lane<V>> LaneAt(Pair<V> v, int lane) {
  const auto [first, second] = v;
  return {LaneAt(first, lane), LaneAt(second, lane)};
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_PAIRS_H_
