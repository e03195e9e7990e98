// Scans of 64-bit integers without vectors, and where they are the faster ones: in runs of four items, which are
// combined before what stands before them is known.
#ifndef PREFIXD_KERNELS_CPU_SIMD_SCAN_RUNS_H_
#define PREFIXD_KERNELS_CPU_SIMD_SCAN_RUNS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/lane_operators.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Scans a part behind `before`, a key, and returns the key of what follows. part.stream and part.next are ignored.
template <class In, class Out, bool kReverse, class O, class Keys>
__attribute__((noinline)) typename Keys::Key ScanRuns(const ScanPart& part, typename Keys::Key before, Keys keys) {
  using T = typename Keys::Key;
  const auto* const in = static_cast<const In*>(part.in) + (kReverse ? part.num_items - 1 : 0);
  auto* const out = static_cast<T*>(part.out) + (kReverse ? part.num_items - 1 : 0);
  const auto key_at = [=](uint64_t i) __attribute__((always_inline)) {
    const auto item = static_cast<Out>(kReverse ? *(in - i) : in[i]);
    return keys.KeyOf(BitsOf<T>(&item));
  };
  const auto write = [=](uint64_t i, T key) __attribute__((always_inline)) {
    *(kReverse ? out - i : out + i) = keys.ElementOf(key);
  };
  uint64_t i = 0;
  for (; i + 4 <= part.num_items; i += 4) {
    const T k0 = key_at(i);
    const T k1 = O::Of(k0, key_at(i + 1));
    const T k2 = O::Of(k1, key_at(i + 2));
    const T k3 = O::Of(k2, key_at(i + 3));
    const T all = O::Of(before, k3);
    if (part.exclusive) {
      write(i, before);
      write(i + 1, O::Of(before, k0));
      write(i + 2, O::Of(before, k1));
      write(i + 3, O::Of(before, k2));
    } else {
      write(i, O::Of(before, k0));
      write(i + 1, O::Of(before, k1));
      write(i + 2, O::Of(before, k2));
      write(i + 3, all);
    }
    before = all;
  }
  for (; i < part.num_items; ++i) {
    const T value = O::Of(before, key_at(i));
    write(i, part.exclusive ? before : value);
    before = value;
  }
  return before;
}

// The same. Operators on bits need no keys here.
template <class In, class Out, bool kReverse, class O, class Keys>
typename Keys::Key ScanRunsByBits(const ScanPart& part, typename Keys::Key before, Keys keys) {
  if constexpr (std::is_same_v<O, BitOr>) {
    const auto bits = keys.ElementOf(before);
    const Plain<typename Keys::Key> plain;
    return keys.KeyOf(keys.mask == 0 ? ScanRuns<In, Out, kReverse, BitOr>(part, bits, plain)
                                     : ScanRuns<In, Out, kReverse, BitAnd>(part, bits, plain));
  } else {
    return ScanRuns<In, Out, kReverse, O>(part, before, keys);
  }
}

// Whether 64-bit integers are scanned sooner in vectors than in runs, as measured on Zen 5 and on a Xeon of 2023. They
// need two of these advantages: nothing is converted; memory is waited for anyway; there are eight lanes, or four that
// are neither turned nor shifted. Products are slow or missing; without AVX-512 so are comparisons.
template <class O, bool kSame, bool kReverse, bool kStream>
constexpr bool VectorsPay(bool exclusive) {
  constexpr bool kHasEight = kVectorBytes == 64;
  constexpr bool kHasFour = kVectorBytes == 32;
  if constexpr (std::is_same_v<O, Multiply>) return kHasEight && kStream;
  if constexpr (std::is_same_v<O, Largest>) return kHasEight || (kHasFour && kSame && kStream);
  return kSame + kStream + (kHasEight || (kHasFour && !kReverse && !exclusive)) >= 2;
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_SCAN_RUNS_H_
