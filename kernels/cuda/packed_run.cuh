// Runs of 1- and 2-byte integers, scanned and reduced in the words that they come in: sums take 4 or 2 items at once.
// Memory leaves time for about eight instructions an element; unpacking and packing each element alone takes more.
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

inline constexpr int kPackedWords = 4;

// The value of a run of narrow integers, 16 bytes.
template <Op kOp, class In, class Out>
__device__ auto PackedValue(const uint32_t (&words)[kPackedWords]) {
  static_assert(!kIsFloating<In> && sizeof(In) < sizeof(uint32_t));
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
  } else {
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
  static_assert(!kIsFloating<T> && sizeof(T) < sizeof(uint32_t));
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
    } else {
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

  // Moves the items up by one place; `first` takes the first place.
  static __device__ void MoveByOne(Item first, uint32_t (&words)[kPackedWords]) {
    constexpr int kBits = 8 * sizeof(T);
#pragma unroll
    for (int w = kPackedWords - 1; w > 0; --w) words[w] = __funnelshift_l(words[w - 1], words[w], kBits);
    words[0] = __funnelshift_l(static_cast<uint32_t>(first) << (32 - kBits), words[0], kBits);
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_PACKED_RUN_CUH_
