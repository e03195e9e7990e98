// A leaf in quads: four vectors that hold the first, second, third and fourth items of as many runs as a vector has
// lanes.
#ifndef PREFIXD_KERNELS_CPU_SIMD_QUADS_H_
#define PREFIXD_KERNELS_CPU_SIMD_QUADS_H_

#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// The two steps of a transposition in blocks of four lanes. First lanes of two vectors alternate: those of the lower
// half of each block, or, where lanes are as long as half a block of bytes, every other one. Then pairs of lanes do.
template <int kL, bool kIsWide>
constexpr int LaneFrom(int i) {
  return (i & 1 ? kL : 0) + (kIsWide ? i & ~1 : (i & ~3) + (i & 3) / 2);
}
template <int kL>
constexpr int PairFrom(int i) {
  return (i & 2 ? kL : 0) + (i & ~3) + (i & 1);
}

// Transposes 4 x 4 items in each block of four lanes; with two lanes, 4 x 2 in a vector.
template <class V>
PREFIXD_INLINE void Transpose(V& v0, V& v1, V& v2, V& v3) {
  constexpr int kL = kLanes<Lane<V>>;
  if constexpr (kL == 2) {
    constexpr auto kLow = [](int i) { return i == 0 ? 0 : kL; };
    constexpr auto kHigh = [](int i) { return i == 0 ? 1 : kL + 1; };
    const V t0 = v0, t1 = v1, t2 = v2, t3 = v3;
    v0 = Shuffle<kLow>(t0, t2);
    v1 = Shuffle<kHigh>(t0, t2);
    v2 = Shuffle<kLow>(t1, t3);
    v3 = Shuffle<kHigh>(t1, t3);
  } else {
    constexpr bool kIsWide = sizeof(Lane<V>) == 8;
    constexpr auto kLow = [](int i) { return LaneFrom<kL, kIsWide>(i); };
    constexpr auto kHigh = [](int i) { return LaneFrom<kL, kIsWide>(i) + (kIsWide ? 1 : 2); };
    constexpr auto kLowPair = [](int i) { return PairFrom<kL>(i); };
    constexpr auto kHighPair = [](int i) { return PairFrom<kL>(i) + 2; };
    const V t0 = Shuffle<kLow>(v0, v1), t1 = Shuffle<kHigh>(v0, v1);
    const V t2 = Shuffle<kLow>(v2, v3), t3 = Shuffle<kHigh>(v2, v3);
    v0 = Shuffle<kLowPair>(t0, t2);
    v1 = kIsWide ? Shuffle<kLowPair>(t1, t3) : Shuffle<kHighPair>(t0, t2);
    v2 = kIsWide ? Shuffle<kHighPair>(t0, t2) : Shuffle<kLowPair>(t1, t3);
    v3 = Shuffle<kHighPair>(t1, t3);
  }
}
// The transposition that leads back. With two lanes it is another one.
template <class V>
PREFIXD_INLINE void TransposeBack(V& v0, V& v1, V& v2, V& v3) {
  if constexpr (kLanes<Lane<V>> == 2) {
    constexpr auto kLow = [](int i) { return i == 0 ? 0 : 2; };
    constexpr auto kHigh = [](int i) { return i == 0 ? 1 : 3; };
    const V t0 = v0, t1 = v1, t2 = v2, t3 = v3;
    v0 = Shuffle<kLow>(t0, t1);
    v1 = Shuffle<kLow>(t2, t3);
    v2 = Shuffle<kHigh>(t0, t1);
    v3 = Shuffle<kHigh>(t2, t3);
  } else {
    Transpose(v0, v1, v2, v3);
  }
}

// Where the items of a vector lie in a leaf, of which `first` is the first in the order of the scan.
template <class T, bool kReverse>
constexpr int PlaceOf(int first) {
  return kReverse ? kLeafItems - kLanes<T> - first : first;
}
template <bool kReverse, class V>
PREFIXD_INLINE V Turned(V v) {
  return kReverse ? Reversed(v) : v;
}

// The q-th of the leaf's quads: v[j] has item j of each of its runs.
template <bool kReverse, class T, class In>
PREFIXD_INLINE void LoadQuad(const In* leaf, int q, Vector<T> (&v)[4]) {
  for (int j = 0; j < 4; ++j) {
    v[j] = Turned<kReverse>(LoadAs<T>(leaf + PlaceOf<T, kReverse>((4 * q + j) * kLanes<T>)));
  }
  Transpose(v[0], v[1], v[2], v[3]);
}

// Stores the results of a quad, each vector in the order of memory.
template <bool kReverse, bool kStream, class V, class To>
PREFIXD_INLINE void StoreQuad(int q, const V (&v)[4], To* leaf) {
  using T = Lane<V>;
  constexpr int kL = kLanes<T>;
  if constexpr (std::is_same_v<T, To>) {
    for (int j = 0; j < 4; ++j) StoreOrStream<kStream>(leaf + PlaceOf<T, kReverse>((4 * q + j) * kL), v[j]);
  } else {
    static_assert(2 * sizeof(To) == sizeof(T));
    using Stored = std::conditional_t<kIsNarrowFloat<To>, uint16_t, To>;
    for (int j = 0; j < 4; j += 2) {
      const HalfVector<Stored> halves[2] = {Halved<To>(v[kReverse ? j + 1 : j]), Halved<To>(v[kReverse ? j : j + 1])};
      Vector<Stored> both;
      __builtin_memcpy(&both, halves, sizeof(both));
      StoreOrStream<kStream>(reinterpret_cast<Stored*>(leaf + PlaceOf<Stored, kReverse>((4 * q + j) * kL)), both);
    }
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_QUADS_H_
