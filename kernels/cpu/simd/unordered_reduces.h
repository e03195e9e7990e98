// Reduces where every order gives the same bits, and the index of the first of the largest.
#ifndef PREFIXD_KERNELS_CPU_SIMD_UNORDERED_REDUCES_H_
#define PREFIXD_KERNELS_CPU_SIMD_UNORDERED_REDUCES_H_

#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/lane_operators.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// The lanes of a vector, combined: its halves, until there are two.
template <class O, class V>
PREFIXD_INLINE Lane<V> OfAllLanes(V v) {
  using T = Lane<V>;
  if constexpr (sizeof(V) == 2 * sizeof(T)) {
    return O::template Of<T>(v[0], v[1]);
  } else {
    typename VectorOf<T, sizeof(V) / 2>::type low, high;
    __builtin_memcpy(&low, &v, sizeof(low));
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
    return OfAllLanes<O>(O::Of(low, high));
  }
}

// The key of all items; the identity if there are none.
template <class O, class Keys>
__attribute__((noinline)) typename Keys::Key ReduceItems(const typename Keys::Key* in, uint64_t num_items, Keys keys) {
  using T = typename Keys::Key;
  using V = Vector<T>;
  constexpr uint64_t kL = kLanes<T>;
  const V identity = Splat(O::template kIdentity<T>);
  V v0 = identity, v1 = identity, v2 = identity, v3 = identity;
  uint64_t i = 0;
  for (; i + 4 * kL <= num_items; i += 4 * kL) {
    v0 = O::Of(v0, keys.KeyOf(Load(in + i)));
    v1 = O::Of(v1, keys.KeyOf(Load(in + i + kL)));
    v2 = O::Of(v2, keys.KeyOf(Load(in + i + 2 * kL)));
    v3 = O::Of(v3, keys.KeyOf(Load(in + i + 3 * kL)));
  }
  for (; i + kL <= num_items; i += kL) v1 = O::Of(v1, keys.KeyOf(Load(in + i)));
  T value = OfAllLanes<O>(O::Of(O::Of(v0, v1), O::Of(v2, v3)));
  for (; i < num_items; ++i) value = O::Of(value, keys.KeyOf(in[i]));
  return value;
}

// The sum of items that are shorter than 8 bytes, as if converted to 64 bits: lanes are added to their neighbours in
// lanes of twice the size, which are emptied before they overflow. Signed items are taken to be larger by their range's
// half, which is taken off at the end.
template <class In>
__attribute__((noinline)) uint64_t SumWide(const In* in, uint64_t num_items) {
  using T = Unsigned<In>;
  using Half = Vector<T>;
  using Wide = Vector<typename IntegersOf<2 * sizeof(T)>::Unsigned>;
  constexpr int kL = kLanes<T>;
  constexpr int kBits = 8 * sizeof(T);
  constexpr uint64_t kChunk = sizeof(T) == 1 ? 128 : 16384;  // Vectors that a lane has room for.
  constexpr T kOffset = kIsSignedLane<In> ? kTopBit<T> : T{0};
  const auto add_pairs = []<class V>(V v, int bits) __attribute__((always_inline)) {
    const V low = Splat(static_cast<Lane<V>>((uint64_t{1} << bits) - 1));
    return (v & low) + (v >> Splat(static_cast<Lane<V>>(bits)));
  };
  Vector<uint64_t> sum = {};
  uint64_t i = 0;
  while (i + kL <= num_items) {
    Wide w0 = {}, w1 = {};
    uint64_t vectors = (num_items - i) / kL;
    if (vectors > kChunk) vectors = kChunk;
    uint64_t k = 0;
    for (; k + 2 <= vectors; k += 2) {
      w0 += add_pairs(reinterpret_cast<Wide>(Half(Load(reinterpret_cast<const T*>(in) + i + k * kL) ^ kOffset)), kBits);
      w1 += add_pairs(reinterpret_cast<Wide>(Half(Load(reinterpret_cast<const T*>(in) + i + k * kL + kL) ^ kOffset)),
                      kBits);
    }
    if (k < vectors) {
      w0 += add_pairs(reinterpret_cast<Wide>(Half(Load(reinterpret_cast<const T*>(in) + i + k * kL) ^ kOffset)), kBits);
    }
    i += vectors * kL;
    for (const Wide wide : {w0, w1}) {
      if constexpr (sizeof(T) == 4) {
        sum += wide;
      } else {
        auto words = reinterpret_cast<Vector<uint32_t>>(wide);
        if constexpr (sizeof(T) == 1) words = add_pairs(words, 16);
        sum += add_pairs(reinterpret_cast<Vector<uint64_t>>(words), 32);
      }
    }
  }
  uint64_t value = 0;
  for (int lane = 0; lane < kLanes<uint64_t>; ++lane) value += sum[lane];
  value -= uint64_t{kOffset} * i;
  for (; i < num_items; ++i) value += static_cast<uint64_t>(in[i]);
  return value;
}

template <class In, class Out>
__attribute__((noinline)) Out ProductWide(const In* in, uint64_t num_items) {
  using T = Unsigned<Out>;
  constexpr int kItems = 8192 / sizeof(T);
  alignas(kVectorBytes) Out buffer[kItems];
  T value = 1;
  for (uint64_t i = 0; i < num_items; i += kItems) {
    const int count = num_items - i < kItems ? static_cast<int>(num_items - i) : kItems;
    Convert(in + i, count, buffer);
    value *= ReduceItems<Multiply>(reinterpret_cast<const T*>(buffer), count, Plain<T>{});
  }
  return static_cast<Out>(value);
}

// The index of the first of the items whose key is the largest.
template <class Keys>
uint64_t IndexOfLargest(const void* items, uint64_t num_items, Keys keys) {
  using T = typename Keys::Key;
  constexpr uint64_t kBlock = 16384 / sizeof(T);  // Is in the first-level cache when it is searched.
  const auto* const in = static_cast<const T*>(items);
  uint64_t index = 0;
  T largest = keys.KeyOf(in[0]);
  for (uint64_t first = 0; first < num_items; first += kBlock) {
    const uint64_t count = num_items - first < kBlock ? num_items - first : kBlock;
    const T here = ReduceItems<Largest>(in + first, count, keys);
    if (here <= largest) continue;
    largest = here;
    index = first;
    constexpr int kL = kLanes<T>;
    while (index + kL <= first + count && Bits(keys.KeyOf(Load(in + index)) == Splat(largest)) == 0) index += kL;
    while (keys.KeyOf(in[index]) != largest) ++index;
  }
  return index;
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_UNORDERED_REDUCES_H_
