// How the ring compact (ring_compact.cuh) selects and moves elements of 1 and 2 bytes, and packs the places of those of
// 1 byte. A lane has a run of 16 bytes, and works on its words of 4 bytes: one instruction for each element takes
// longer than memory does.
//
// What is found for the items of a word is a flag for each, in the item's top bit; the word's other bits are zero.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_NARROW_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_NARROW_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/narrow_float.h"

namespace prefixd::cuda {

inline constexpr int kRunBytes = 16;

// A word of items that are all 1. Multiplied by an item, it has the item everywhere.
template <int kItemBytes>
inline constexpr uint32_t kOnes = kItemBytes == 1 ? 0x01010101 : 0x00010001;
template <int kItemBytes>
inline constexpr uint32_t kTopBits = kOnes<kItemBytes> << (8 * kItemBytes - 1);

// Which bytes of a word are not zero.
inline __device__ uint32_t FlagNonZero(uint32_t word) {
  constexpr uint32_t kTops = kTopBits<1>;
  return (((word & ~kTops) + ~kTops) | word) & kTops;
}

// Which integers of a word are in an interval. One whose low end is above its high end has none.
template <class T>
class WordInterval {
 public:
  __device__ WordInterval(T low, T high)
      : low_tops_(~(Ordered(low) * kOnes<kBytes>)),
        high_tops_(~(Ordered(high) * kOnes<kBytes>)),
        from_low_((kTop - Ordered(low) % kTop) * kOnes<kBytes>),
        above_high_((kTop - 1 - Ordered(high) % kTop) * kOnes<kBytes>) {}

  __device__ uint32_t Flag(uint32_t word) const {
    const uint32_t tops = std::is_signed_v<T> ? ~word : word;
    // The sums say by their top bits how the items' other bits compare with those of the ends. They never carry.
    const uint32_t rest = word & ~kTopBits<kBytes>;
    const uint32_t from_low = Majority(tops, rest + from_low_, low_tops_);
    const uint32_t above_high = Majority(tops, rest + above_high_, high_tops_);
    return from_low & ~above_high & kTopBits<kBytes>;
  }

 private:
  static constexpr int kBytes = sizeof(T);
  static constexpr uint32_t kTop = 1u << (8 * kBytes - 1);

  // The bits of x, so changed that they compare as an unsigned number.
  static __device__ uint32_t Ordered(T x) {
    return static_cast<std::make_unsigned_t<T>>(x) ^ (std::is_signed_v<T> ? kTop : 0);
  }
  // The higher top bit decides; between equal ones, the sum does.
  static __device__ uint32_t Majority(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (a & c) | (b & c); }

  uint32_t low_tops_;
  uint32_t high_tops_;
  uint32_t from_low_;
  uint32_t above_high_;
};

// The least f16 or bf16 that is not below x, which is no NaN.
template <class T>
__device__ T NotBelow(float x) {
  T item(x);
  if (item < x) item.bits += (item.bits & 0x8000) != 0 ? -1 : 1;
  return item;
}

// The same for f16 and bf16. They are in an interval of f32 if they are in that between the nearest ends of their own
// type inside it.
template <int kFractionBits>
class WordInterval<NarrowFloat<kFractionBits>> {
 public:
  __device__ WordInterval(float low, float high)
      : low_(NotBelow<NarrowFloat<kFractionBits>>(low).bits * kOnes<2>),
        high_((-NotBelow<NarrowFloat<kFractionBits>>(-high)).bits * kOnes<2>) {}

  __device__ uint32_t Flag(uint32_t word) const { return AtMost(low_, word) & AtMost(word, high_) & kTopBits<2>; }

 private:
  // All bits of the items where it is true.
  static __device__ uint32_t AtMost(uint32_t left, uint32_t right) {
    uint32_t items;
    if constexpr (kFractionBits == 10) {
      asm("set.le.u32.f16x2 %0, %1, %2;" : "=r"(items) : "r"(left), "r"(right));
    } else {
      asm("set.le.u32.bf16x2 %0, %1, %2;" : "=r"(items) : "r"(left), "r"(right));
    }
    return items;
  }

  uint32_t low_;
  uint32_t high_;
};

// Bit i: the flag of item i of 2 or 4 words of bytes, or 4 words of items of 2 bytes.
template <int kItemBytes, int kWords>
__device__ uint32_t BitsOfFlags(const uint32_t (&flags)[kWords]) {
  constexpr uint32_t kLow = 0x08040201, kHigh = 0x80402010;  // A byte has the item's place.
  if constexpr (kItemBytes == 2) {
    const uint32_t low = __dp2a_hi(flags[1], kLow, __dp2a_lo(flags[0], kLow, 0u));
    return __dp2a_hi(flags[3], kHigh, __dp2a_lo(flags[2], kHigh, low)) >> 15;
  } else {
    uint32_t bits = 0;
#pragma unroll
    for (int w = kWords - 2; w >= 0; w -= 2) bits = __dp4a(flags[w], kLow, __dp4a(flags[w + 1], kHigh, bits << 8));
    return bits >> 7;
  }
}

// For each way to keep items of half a run: the selectors of __byte_perm that pack them, for the low word of the half
// in the lower 16 bits, and for its high word in the upper ones. What stands beside the packed items is arbitrary.
template <int kItemBytes>
struct PackSelectors {
  static constexpr int kHalfItems = kRunBytes / 2 / kItemBytes;
  static constexpr uint32_t kWays = 1u << kHalfItems;

  uint32_t to_end[kWays];
  uint32_t to_begin[kWays];

  // Bit i of kept: item i is kept.
  __device__ void Set(uint32_t kept) {
    uint32_t selectors = 0;
    int num_bytes = 0;
    for (int i = 0; i < kHalfItems * kItemBytes; ++i) {
      if ((kept >> i / kItemBytes & 1) != 0) selectors |= i << 4 * num_bytes++;
    }
    to_begin[kept] = selectors;
    to_end[kept] = num_bytes == 0 ? 0 : selectors << (32 - 4 * num_bytes);
  }
};

// Four of the bytes of two words. Needs: the selectors are below 8, for which __byte_perm would take care again.
inline __device__ uint32_t BytesOf(uint32_t low, uint32_t high, uint32_t selectors) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(low), "r"(high), "r"(selectors));
  return bytes;
}

// Packs the kept items of a run: those of its first half end where those of its second half begin.
template <int kItemBytes>
__device__ void PackRun(uint32_t kept, const PackSelectors<kItemBytes>& s_selectors, uint32_t (&words)[4]) {
  const uint32_t first = s_selectors.to_end[kept % s_selectors.kWays];
  const uint32_t second = s_selectors.to_begin[kept / s_selectors.kWays];
  const uint32_t packed[4] = {BytesOf(words[0], words[1], first), BytesOf(words[0], words[1], first >> 16),
                              BytesOf(words[2], words[3], second), BytesOf(words[2], words[3], second >> 16)};
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = packed[w];
}

// Stores the kept items of a packed run, the first one at s_words + begin, and nothing else. Needs: s_words 4-byte
// aligned.
template <int kItemBytes>
__device__ void StorePacked(const uint32_t (&packed)[4], uint32_t kept, uint32_t begin, unsigned char* s_words) {
  const uint32_t num_bytes = kItemBytes * __popc(kept);
  const uint32_t kept_first = kept % PackSelectors<kItemBytes>::kWays;
  const int to = static_cast<int>(begin + kItemBytes * __popc(kept_first)) - kRunBytes / 2;  // Where packed[0] goes.
  const uint32_t shift = 8 * static_cast<uint32_t>(to);  // Funnel shifts take it modulo 32.
  const uint32_t shifted[5] = {__funnelshift_l(0, packed[0], shift), __funnelshift_l(packed[0], packed[1], shift),
                               __funnelshift_l(packed[1], packed[2], shift),
                               __funnelshift_l(packed[2], packed[3], shift), __funnelshift_l(packed[3], 0, shift)};
  // The kept items are the bytes from `low`, 0 to 11, to `high`, 8 to 19, of the shifted words, which go to `base`.
  const int base = to & -4;
  const uint32_t low = begin - base;
  const uint32_t high = low + num_bytes;
  const auto store = [&](uint32_t at, auto item) { *reinterpret_cast<decltype(item)*>(s_words + base + at) = item; };
  if (low == 0) store(0, shifted[0]);
  if (low <= 4) store(4, shifted[1]);
  if (low <= 8 && high >= 12) store(8, shifted[2]);
  if (high >= 16) store(12, shifted[3]);
  const uint32_t head = low < 4 ? shifted[0] : low < 8 ? shifted[1] : shifted[2];
  const uint32_t tail = high < 12 ? shifted[2] : high < 16 ? shifted[3] : shifted[4];
  if constexpr (kItemBytes == 2) {
    if (kept != 0 && low % 4 != 0) store(low, static_cast<uint16_t>(head >> 16));
    if (kept != 0 && high % 4 != 0) store(high - 2, static_cast<uint16_t>(tail));
  } else {
    // The first and the last byte, if they are at odd places, and the pairs next to them that are half a word.
    const uint32_t low_pair = (low + 1) & ~1u, high_pair = high & ~1u;
    if (kept != 0 && low % 2 != 0) store(low, static_cast<uint8_t>(__funnelshift_r(head, 0, 8 * low)));
    if (low_pair % 4 != 0 && low_pair < high_pair) store(low_pair, static_cast<uint16_t>(head >> 16));
    if (high_pair % 4 != 0 && low_pair < high_pair) store(high_pair - 2, static_cast<uint16_t>(tail));
    if (kept != 0 && high % 2 != 0) store(high - 1, static_cast<uint8_t>(__funnelshift_r(tail, 0, 8 * high - 8)));
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_NARROW_CUH_
