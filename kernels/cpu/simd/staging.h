// Items on their way between an array and a scan that takes them in another type, direction or place: in stages that
// stay in the first-level cache.
#ifndef PREFIXD_KERNELS_CPU_SIMD_STAGING_H_
#define PREFIXD_KERNELS_CPU_SIMD_STAGING_H_

#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

PREFIXD_INLINE bool IsAligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kVectorBytes == 0; }

template <class V>
PREFIXD_INLINE V Reversed(V v) {
  constexpr auto kFrom = [](int i) { return kLanes<Lane<V>> - 1 - i; };
  return Shuffle<kFrom>(v, v);
}

// Copies count items, converted; with kReverse, *from is the first and the others stand before it.
template <class In, class T, bool kReverse>
__attribute__((noinline)) void LoadItems(const In* from, int count, T* to) {
  int i = 0;
  if constexpr (kReverse && std::is_same_v<In, T>) {
    for (; i + kLanes<T> <= count; i += kLanes<T>) Store(to + i, Reversed(Load(from - i - (kLanes<T> - 1))));
  }
  for (; i < count; ++i) to[i] = static_cast<T>(from[kReverse ? -i : i]);
}

// Copies count items; with kReverse, *to takes the first and the others go before it. Streams where `to` is aligned.
template <class T, bool kReverse>
__attribute__((noinline)) void StoreItems(const T* from, int count, T* to, bool stream) {
  constexpr int kL = kLanes<T>;
  int i = 0;
  if constexpr (kReverse) {
    if (stream && IsAligned(to + 1)) {
      for (; i + kL <= count; i += kL) Stream(to - i - (kL - 1), Reversed(Load(from + i)));
    }
    for (; i + kL <= count; i += kL) Store(to - i - (kL - 1), Reversed(Load(from + i)));
    for (; i < count; ++i) to[-i] = from[i];
  } else {
    if (stream && IsAligned(to)) {
      for (; i + kL <= count; i += kL) Stream(to + i, Load(from + i));
    }
    for (; i + kL <= count; i += kL) Store(to + i, Load(from + i));
    for (; i < count; ++i) to[i] = from[i];
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_STAGING_H_
