// Runs of 1- and 2-byte elements whose order is free, scanned and reduced in the words that they come in: sums take 4
// or 2 items at once. Memory leaves time for about eight instructions an element; unpacking and packing each element
// alone takes more.
#ifndef PREFIXD_KERNELS_CUDA_PACKED_RUN_CUH_
#define PREFIXD_KERNELS_CUDA_PACKED_RUN_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/operators.cuh"

namespace prefixd::cuda {

// Unpacks item i of a word by one instruction: the item's bytes, with zeros or its sign above them.
template <class T>
__device__ auto Unpack(uint32_t word, int i) {
  using Item = std::conditional_t<kIsSignedInteger<T>, int32_t, uint32_t>;
  constexpr int kZero = 4;  // Selects a byte of the other operand, which is 0.
  constexpr int kSign = 8;
  const int first = i * static_cast<int>(sizeof(T));
  const int last = first + static_cast<int>(sizeof(T)) - 1;
  const int above = kIsSignedInteger<T> ? kSign | last : kZero;
  const int second = sizeof(T) == 2 ? last : above;
  Item item;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(item) : "r"(word), "r"(first | second << 4 | above << 8 | above << 12));
  return item;
}

// The first element of a word as an Item.
template <class T, class Item>
__device__ Item FirstOf(uint32_t word) {
  if constexpr (kIsNarrowFloat<T>) {
    T first;
    first.bits = static_cast<uint16_t>(word);
    return first;
  } else {
    return static_cast<Item>(Unpack<T>(word, 0));
  }
}
// The bits of an Item that is an element.
template <class T, class Item>
__device__ uint32_t BitsOf(Item item) {
  if constexpr (kIsNarrowFloat<T>) {
    return T(item).bits;
  } else {
    return static_cast<uint32_t>(item);
  }
}

inline constexpr int kPackedWords = 4;

// Extrema, two at a time, in words of two fields of 16 bits. Bytes are the upper ones of a field, which decide; the
// lower ones may be anything. A word as it is has its odd bytes above, shifted by a byte its even ones. sm_90 has one
// instruction for both fields. Those for floats treat NaN and -0 as we do.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kCardHasPairs = true;
#else
inline constexpr bool kCardHasPairs = false;
#endif
template <Op kOp, class T>
inline constexpr bool kHasPairsOfExtrema = kCardHasPairs && (kOp == Op::kMin || kOp == Op::kMax) && sizeof(T) < 4;

// Operators of bits, on all items of a word at once.
template <Op kOp>
inline constexpr bool kIsBitwise = kOp == Op::kAnd || kOp == Op::kOr || kOp == Op::kXor;
template <Op kOp>
__device__ uint32_t Bitwise(uint32_t a, uint32_t b) {
  return kOp == Op::kAnd ? a & b : kOp == Op::kOr ? a | b : a ^ b;
}

template <Op kOp, class T>
__device__ uint32_t ExtremaOfPairs(uint32_t a, uint32_t b) {
  if constexpr (std::is_same_v<T, Float16>) {
    if constexpr (kOp == Op::kMin) {
      asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    } else {
      asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    }
    return a;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    if constexpr (kOp == Op::kMin) {
      asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    } else {
      asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(a) : "r"(a), "r"(b));
    }
    return a;
  } else if constexpr (kIsSignedInteger<T>) {
    return kOp == Op::kMin ? __vmins2(a, b) : __vmaxs2(a, b);
  } else {
    return kOp == Op::kMin ? __vminu2(a, b) : __vmaxu2(a, b);
  }
}

// The value of a run of narrow elements, 16 bytes.
template <Op kOp, class In, class Out>
__device__ auto PackedValue(const uint32_t (&words)[kPackedWords]) {
  static_assert(sizeof(In) < sizeof(uint32_t));
  using Operator = prefixd::cuda::Operator<kOp, Out>;
  using Item = typename Operator::Item;
  constexpr int kWordItems = sizeof(uint32_t) / sizeof(In);
  if constexpr (kOp == Op::kSum) {
    using Small = std::conditional_t<kIsSignedInteger<In>, int32_t, uint32_t>;  // Holds the sum of a run.
    Small sum = 0;
#pragma unroll
    for (int w = 0; w < kPackedWords; ++w) {
      const auto word = static_cast<Small>(words[w]);
      sum = sizeof(In) == 1 ? __dp4a(word, Small{0x01010101}, sum) : __dp2a_lo(word, Small{0x0101}, sum);
    }
    return static_cast<Item>(sum);
  } else if constexpr (kIsBitwise<kOp>) {
    uint32_t value = Bitwise<kOp>(Bitwise<kOp>(words[0], words[1]), Bitwise<kOp>(words[2], words[3]));
    value = Bitwise<kOp>(value, value >> 16);
    if constexpr (sizeof(In) == 1) value = Bitwise<kOp>(value, value >> 8);
    return static_cast<Item>(Unpack<In>(value, 0));
  } else if constexpr (kHasPairsOfExtrema<kOp, In> && sizeof(In) == 2) {
    const uint32_t pair = ExtremaOfPairs<kOp, In>(ExtremaOfPairs<kOp, In>(words[0], words[1]),
                                                  ExtremaOfPairs<kOp, In>(words[2], words[3]));
    return FirstOf<In, Item>(ExtremaOfPairs<kOp, In>(pair, pair >> 16));
  } else if constexpr (kHasPairsOfExtrema<kOp, In>) {
    uint32_t odd = words[0], even = words[0] << 8;
#pragma unroll
    for (int w = 1; w < kPackedWords; ++w) {
      odd = ExtremaOfPairs<kOp, In>(odd, words[w]);
      even = ExtremaOfPairs<kOp, In>(even, words[w] << 8);
    }
    const uint32_t pair = ExtremaOfPairs<kOp, In>(odd, even);
    return static_cast<Item>(Unpack<In>(ExtremaOfPairs<kOp, In>(pair, pair >> 16), 1));
  } else {
    static_assert(!kIsNarrowFloat<In>);
    Item value = static_cast<Item>(Unpack<In>(words[0], 0));
#pragma unroll
    for (int i = 1; i < kPackedWords * kWordItems; ++i) {
      value = Operator::Combine(value, static_cast<Item>(Unpack<In>(words[i / kWordItems], i % kWordItems)));
    }
    return value;
  }
}

template <Op kOp, class T>
struct PackedRun {
  static_assert(sizeof(T) < sizeof(uint32_t));
  using Operator = prefixd::cuda::Operator<kOp, T>;
  using Item = typename Operator::Item;
  static constexpr int kWordItems = sizeof(uint32_t) / sizeof(T);

  // Replaces each item by the value of `before` and the items up to this one.
  static __device__ void Scan(Item before, uint32_t (&words)[kPackedWords]) {
    if constexpr (kOp == Op::kSum && sizeof(T) == 1) {
      // Words of two 16-bit fields, in which sums do not overflow: one word for the odd items, one for the even ones.
      uint32_t carry = (static_cast<uint32_t>(before) & 0xff) * 0x00010001;
#pragma unroll
      for (int w = 0; w < kPackedWords; ++w) {
        const uint32_t odd = __byte_perm(words[w], 0, 0x4341);
        const uint32_t up_to_odd = (__byte_perm(words[w], 0, 0x4240) + odd) * 0x00010001 + carry;
        words[w] = __byte_perm(up_to_odd - odd, up_to_odd, 0x6240);
        carry = __byte_perm(up_to_odd, 0, 0x3232);
      }
    } else if constexpr (kIsBitwise<kOp>) {
      constexpr uint32_t kNone = kOp == Op::kAnd ? ~0u : 0;  // Changes nothing.
      uint32_t carry = __byte_perm(before, 0, sizeof(T) == 1 ? 0x0000 : 0x1010);
#pragma unroll
      for (uint32_t& word : words) {
        if constexpr (sizeof(T) == 1) word = Bitwise<kOp>(word, __funnelshift_l(kNone, word, 8));
        word = Bitwise<kOp>(Bitwise<kOp>(word, __funnelshift_l(kNone, word, 16)), carry);
        carry = __byte_perm(word, 0, sizeof(T) == 1 ? 0x3333 : 0x3232);
      }
    } else if constexpr (kHasPairsOfExtrema<kOp, T> && sizeof(T) == 2) {
      uint32_t carry = __byte_perm(BitsOf<T>(before), 0, 0x1010);
#pragma unroll
      for (uint32_t& word : words) {
        word = ExtremaOfPairs<kOp, T>(ExtremaOfPairs<kOp, T>(word, __byte_perm(word, 0, 0x1010)), carry);
        carry = __byte_perm(word, 0, 0x3232);
      }
    } else if constexpr (kHasPairsOfExtrema<kOp, T>) {
      ScanPairsOfBytes(before, words);
    } else {
      static_assert(!kIsNarrowFloat<T>);
      Item value = before;
#pragma unroll
      for (int w = 0; w < kPackedWords; ++w) {
        Item up_to[kWordItems];
#pragma unroll
        for (int i = 0; i < kWordItems; ++i) {
          value = Operator::Combine(value, Unpack<T>(words[w], i));
          up_to[i] = value;
        }
        if constexpr (kWordItems == 4) {
          const uint32_t low = __byte_perm(up_to[0], up_to[1], 0x0040);
          const uint32_t high = __byte_perm(up_to[2], up_to[3], 0x0040);
          words[w] = __byte_perm(low, high, 0x5410);
        } else {
          words[w] = __byte_perm(up_to[0], up_to[1], 0x5410);
        }
      }
    }
  }

  static __device__ void ScanPairsOfBytes(Item before, uint32_t (&words)[kPackedWords]) {
    uint32_t carry = __byte_perm(BitsOf<T>(before), 0, 0x0404);
#pragma unroll
    for (uint32_t& word : words) {
      const uint32_t even = word << 8;
      const uint32_t up_to_odd = ExtremaOfPairs<kOp, T>(even, word);  // Within each half of the word.
      const uint32_t before_halves = __byte_perm(carry, ExtremaOfPairs<kOp, T>(carry, up_to_odd), 0x5410);
      const uint32_t evens = ExtremaOfPairs<kOp, T>(before_halves, even);
      const uint32_t odds = ExtremaOfPairs<kOp, T>(before_halves, up_to_odd);
      word = __byte_perm(evens, odds, 0x7351);
      carry = __byte_perm(odds, 0, 0x3434);
    }
  }

  // Moves the items up by one place; `first` takes the first place.
  static __device__ void MoveByOne(Item first, uint32_t (&words)[kPackedWords]) {
    constexpr int kBits = 8 * sizeof(T);
#pragma unroll
    for (int w = kPackedWords - 1; w > 0; --w) words[w] = __funnelshift_l(words[w - 1], words[w], kBits);
    words[0] = __funnelshift_l(BitsOf<T>(first) << (32 - kBits), words[0], kBits);
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_PACKED_RUN_CUH_
