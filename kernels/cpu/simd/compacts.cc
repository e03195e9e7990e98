// Compact in two steps: a bit for each item, which says whether it is kept; then the items whose bits are set.
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"
#include "kernels/interval.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

constexpr int kWordItems = 64;

constexpr uint64_t LowBits(uint64_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// ---- Which items are kept ------------------------------------------------------------------------------------------
// Bit i is set if lane i of a is not above that of b; or if the item in lane i is from low to high.
#if defined(__AVX512BW__)
// By mask registers: the compiler makes a vector of the mask and a mask of the vector. among: the bits that may be set.
template <class T>
PREFIXD_INLINE uint64_t BitsNotAbove(Vector<T> a, Vector<T> b, uint64_t among = ~uint64_t{0}) {
  if constexpr (kIsFloating<T> && sizeof(T) == 4) {
    return _mm512_mask_cmp_ps_mask(static_cast<__mmask16>(among), reinterpret_cast<__m512>(a),
                                   reinterpret_cast<__m512>(b), _CMP_LE_OQ);
  } else if constexpr (kIsFloating<T>) {
    return _mm512_mask_cmp_pd_mask(static_cast<__mmask8>(among), reinterpret_cast<__m512d>(a),
                                   reinterpret_cast<__m512d>(b), _CMP_LE_OQ);
  } else {
    const auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    constexpr bool kSigned = kIsSignedInteger<T>;
    if constexpr (sizeof(T) == 1) {
      return kSigned ? _mm512_mask_cmple_epi8_mask(among, x, y) : _mm512_mask_cmple_epu8_mask(among, x, y);
    } else if constexpr (sizeof(T) == 2) {
      const auto m = static_cast<__mmask32>(among);
      return kSigned ? _mm512_mask_cmple_epi16_mask(m, x, y) : _mm512_mask_cmple_epu16_mask(m, x, y);
    } else if constexpr (sizeof(T) == 4) {
      const auto m = static_cast<__mmask16>(among);
      return kSigned ? _mm512_mask_cmple_epi32_mask(m, x, y) : _mm512_mask_cmple_epu32_mask(m, x, y);
    } else {
      const auto m = static_cast<__mmask8>(among);
      return kSigned ? _mm512_mask_cmple_epi64_mask(m, x, y) : _mm512_mask_cmple_epu64_mask(m, x, y);
    }
  }
}
template <class T>
PREFIXD_INLINE uint64_t BitsBetween(Vector<T> low, Vector<T> item, Vector<T> high) {
  return BitsNotAbove<T>(item, high, BitsNotAbove<T>(low, item));
}
PREFIXD_INLINE uint64_t BitsSet(Vector<uint8_t> item) {
  return _mm512_test_epi8_mask(reinterpret_cast<__m512i>(item), reinterpret_cast<__m512i>(item));
}
#else
template <class T>
PREFIXD_INLINE uint64_t BitsNotAbove(Vector<T> a, Vector<T> b) {
  return Bits(a <= b);
}
template <class T>
PREFIXD_INLINE uint64_t BitsBetween(Vector<T> low, Vector<T> item, Vector<T> high) {
  return Bits((low <= item) & (item <= high));
}
PREFIXD_INLINE uint64_t BitsSet(Vector<uint8_t> item) { return Bits(item != Splat(uint8_t{0})); }
#endif

// Rules: BitsIn says which of a vector's items are kept, Holds whether one is.
template <class T>
struct IsNotAbove {
  PREFIXD_INLINE uint64_t BitsIn(Vector<T> items) const { return BitsNotAbove<T>(items, Splat(high)); }
  PREFIXD_INLINE bool Holds(T item) const { return item <= high; }
  T high;
};

template <class T>
struct IsNotBelow {
  PREFIXD_INLINE uint64_t BitsIn(Vector<T> items) const { return BitsNotAbove<T>(Splat(low), items); }
  PREFIXD_INLINE bool Holds(T item) const { return low <= item; }
  T low;
};

template <class T>
struct IsBetween {
  PREFIXD_INLINE uint64_t BitsIn(Vector<T> items) const { return BitsBetween<T>(Splat(low), items, Splat(high)); }
  PREFIXD_INLINE bool Holds(T item) const { return (low <= item) & (item <= high); }
  T low, high;
};

struct IsSet {
  PREFIXD_INLINE uint64_t BitsIn(Vector<uint8_t> items) const { return BitsSet(items); }
  PREFIXD_INLINE bool Holds(uint8_t item) const { return item != 0; }
};

template <class In, class Rule>
PREFIXD_INLINE uint64_t SelectBy(const Rule& rule, const void* items, uint64_t num_items, bool invert, uint64_t* bits) {
  using T = Accumulator<In>;
  constexpr int kL = kLanes<T>;
  const auto* const in = static_cast<const In*>(items);
  const uint64_t turned = invert ? ~uint64_t{0} : 0;
  uint64_t kept = 0;
  uint64_t i = 0;
  for (; i + kWordItems <= num_items; i += kWordItems) {
    uint64_t word = 0;
    for (int k = 0; k < kWordItems; k += kL) word |= rule.BitsIn(LoadAs<T>(in + i + k)) << k;
    word ^= turned;
    *bits++ = word;
    kept += __builtin_popcountll(word);
  }
  if (i < num_items) {
    uint64_t word = 0;
    for (uint64_t k = 0; i + k < num_items; ++k) word |= uint64_t{rule.Holds(static_cast<T>(in[i + k]))} << k;
    word = (word ^ turned) & LowBits(num_items - i);
    *bits = word;
    kept += __builtin_popcountll(word);
  }
  return kept;
}

// One comparison an item, where it does.
template <class In>
uint64_t Select(const void* items, uint64_t num_items, const ItemInterval& interval, uint64_t* bits) {
  using T = Accumulator<In>;
  const T low = BitsOf<T>(&interval.low.bits), high = BitsOf<T>(&interval.high.bits);
  if (low == Interval<T>::kLowest) return SelectBy<In>(IsNotAbove<T>{high}, items, num_items, interval.outside, bits);
  if (high == Interval<T>::kHighest) return SelectBy<In>(IsNotBelow<T>{low}, items, num_items, interval.outside, bits);
  return SelectBy<In>(IsBetween<T>{low, high}, items, num_items, interval.outside, bits);
}

uint64_t PackBytes(const void* mask, uint64_t num_items, bool invert, uint64_t* bits) {
  return SelectBy<uint8_t>(IsSet(), mask, num_items, invert, bits);
}

uint64_t CopyBits(const void* mask, uint64_t num_items, bool invert, uint64_t* bits) {
  const auto* const from = static_cast<const uint8_t*>(mask);
  const uint64_t turned = invert ? ~uint64_t{0} : 0;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < num_items; i += kWordItems) {
    const uint64_t left = num_items - i;
    uint64_t word = 0;
    __builtin_memcpy(&word, from + i / 8, left < kWordItems ? (left + 7) / 8 : 8);
    word = (word ^ turned) & LowBits(left);
    *bits++ = word;
    kept += __builtin_popcountll(word);
  }
  return kept;
}

// ---- Keeping them --------------------------------------------------------------------------------------------------
// A step reads kStep items and writes kStep, of which those whose bits are set come first; what is behind them has no
// meaning. AVX-512 could compress, but is slower by it: its stores are twice as long, and most of them straddle lines.
// An instruction set without a shuffle that it can compute has no steps.
#if defined(__AVX2__)

template <class T>
constexpr int kStep = sizeof(T) == 8 ? 4 : 8;

// For each set of eight bits, a byte each for the numbers of those that are set, the lowest first.
struct BitNumbers {
  uint64_t of[256];
};
constexpr BitNumbers MakeBitNumbers() {
  BitNumbers numbers = {};
  for (int bits = 0; bits < 256; ++bits) {
    int place = 0;
    for (int bit = 0; bit < 8; ++bit) {
      if (bits >> bit & 1) numbers.of[bits] |= uint64_t(bit) << (8 * place++);
    }
  }
  return numbers;
}
constexpr BitNumbers kBitNumbers = MakeBitNumbers();

PREFIXD_INLINE __m128i NumbersOf(uint32_t bits) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kBitNumbers.of + bits));
}

// The halves of eight things, 2i and 2i + 1 for each number i.
PREFIXD_INLINE __m128i HalvesOf(__m128i numbers) {
  const __m128i twice = _mm_unpacklo_epi8(numbers, numbers);
  return _mm_add_epi8(_mm_add_epi8(twice, twice), _mm_set1_epi16(0x0100));
}

template <class T>
PREFIXD_INLINE void KeepStep(const T* in, uint32_t bits, T* out) {
  const __m128i numbers = NumbersOf(bits);
  if constexpr (sizeof(T) == 1) {
    const __m128i items = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(items, numbers));
  } else if constexpr (sizeof(T) == 2) {
    const __m128i items = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(items, HalvesOf(numbers)));
  } else {
    const __m256i lanes = _mm256_cvtepu8_epi32(sizeof(T) == 4 ? numbers : HalvesOf(numbers));
    const __m256i items = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(items, lanes));
  }
}

template <class Index>
PREFIXD_INLINE void KeepIndexStep(uint64_t first, uint32_t bits, Index* out) {
  const __m128i numbers = NumbersOf(bits);
  const __m256i indices =
      sizeof(Index) == 4
          ? _mm256_add_epi32(_mm256_cvtepu8_epi32(numbers), _mm256_set1_epi32(static_cast<int>(first)))
          : _mm256_add_epi64(_mm256_cvtepu8_epi64(numbers), _mm256_set1_epi64x(static_cast<int64_t>(first)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), indices);
}

#else

template <class T>
constexpr int kStep = 0;
template <class T>
PREFIXD_INLINE void KeepStep(const T* /*in*/, uint32_t /*bits*/, T* /*out*/) {}
template <class Index>
PREFIXD_INLINE void KeepIndexStep(uint64_t /*first*/, uint32_t /*bits*/, Index* /*out*/) {}

#endif

// Calls step(i, bits of the items i .., where to write) or one(i) for what is kept of the items [first, last), and
// moves on in [out, end); returns where it stopped. Steps write whole vectors, so they are used as long as these do not
// reach past the end. Needs: first is a multiple of kWordItems.
template <class T, class Step, class One>
PREFIXD_INLINE T* KeepItems(const uint64_t* bits, uint64_t first, uint64_t last, T* out, const T* end, Step step,
                            One one) {
  for (uint64_t i = first; i < last; i += kWordItems) {
    uint64_t word = bits[i / kWordItems];
    if constexpr (kStep < T >> 0) {
      if (end - out >= kWordItems && last - i >= kWordItems) {
        for (int k = 0; k < kWordItems; k += kStep<T>) {
          const auto of_step = static_cast<uint32_t>(word >> k & LowBits(kStep<T>));
          step(i + k, of_step, out);
          out += __builtin_popcount(of_step);
        }
        continue;
      }
    } else if (word == ~uint64_t{0}) {
      for (int k = 0; k < kWordItems; ++k) *out++ = one(i + k);
      continue;
    }
    for (; word != 0; word &= word - 1) *out++ = one(i + __builtin_ctzll(word));
  }
  return out;
}

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kChunkBytes = 2048;  // Short: while what is kept of one is written, loads of the next can begin.

// Gathers what is kept and writes it past the caches, in whole lines. The first and the last line, which may be those
// of other parts too, are stored as ever.
template <class T>
class LineWriter {
 public:
  // Will write to `out` and on.
  explicit LineWriter(T* out) : out_(out), num_ahead_(-reinterpret_cast<uintptr_t>(out) % kLineBytes / sizeof(T)) {}

  // Room for what a chunk keeps, and for a step that writes more.
  T* Room() { return gathered_ + num_gathered_; }
  const T* end() const { return gathered_ + kRoom; }

  // What is gathered now ends at `to`.
  void MoveTo(T* to) {
    num_gathered_ = to - gathered_;
    if (num_gathered_ < num_ahead_) return;
    __builtin_memcpy(out_, gathered_, num_ahead_ * sizeof(T));
    uint64_t i = num_ahead_;
    num_ahead_ = 0;
    for (; num_gathered_ - i >= kLineItems; i += kLineItems) {
      for (uint64_t k = i; k < i + kLineItems; k += kLanes<T>) Stream(out_ + k, Load(gathered_ + k));
    }
    out_ += i;
    num_gathered_ -= i;
    __builtin_memmove(gathered_, gathered_ + i, num_gathered_ * sizeof(T));
  }

  void Finish() {
    __builtin_memcpy(out_, gathered_, num_gathered_ * sizeof(T));
    FinishStreaming();
  }

 private:
  static constexpr uint64_t kLineItems = kLineBytes / sizeof(T);
  static constexpr uint64_t kRoom = kLineItems + kChunkBytes / sizeof(T) + kWordItems;

  T* out_;
  uint64_t num_ahead_;  // What the line that `out` lies in has room for, until it is written.
  uint64_t num_gathered_ = 0;
  alignas(kLineBytes) T gathered_[kRoom];
};

// Calls keep(first, last, out, end), which returns where it stopped, for one chunk of items after the other.
template <bool kStream, class T, class Keep>
PREFIXD_INLINE void KeepChunks(const KeptPart& part, T* out, Keep keep) {
  constexpr uint64_t kChunkItems = kChunkBytes / sizeof(T);
  const T* const end = out + part.num_kept;
  LineWriter<T> lines(out);
  for (uint64_t first = 0; first < part.num_items; first += kChunkItems) {
    const uint64_t last = part.num_items - first < kChunkItems ? part.num_items : first + kChunkItems;
    if constexpr (kStream) {
      lines.MoveTo(keep(first, last, lines.Room(), lines.end()));
    } else {
      out = keep(first, last, out, end);
    }
  }
  if constexpr (kStream) lines.Finish();
}

template <class T, bool kStream>
void KeepPart(const KeptPart& part, const T* in, const T* next, T* out) {
  KeepChunks<kStream>(
      part, out, [&](uint64_t first, uint64_t last, T * to, const T* end) __attribute__((always_inline)) {
        Fetch<kChunkBytes>(next + first);
        return KeepItems(
            part.bits, first, last, to, end,
            [in](uint64_t i, uint32_t of_step, T * at)
                __attribute__((always_inline)) { KeepStep(in + i, of_step, at); },
            [in](uint64_t i) __attribute__((always_inline)) { return in[i]; });
      });
}

template <class T>
void Keep(const KeptPart& part, const void* items, const void* next, void* out) {
  (part.stream ? KeepPart<T, true> : KeepPart<T, false>)(part, static_cast<const T*>(items),
                                                         static_cast<const T*>(next), static_cast<T*>(out));
}

template <class Index, bool kStream>
void KeepPartIndices(const KeptPart& part, uint64_t of_first, Index* out) {
  KeepChunks<kStream>(
      part, out, [&](uint64_t first, uint64_t last, Index * to, const Index* end) __attribute__((always_inline)) {
        return KeepItems(
            part.bits, first, last, to, end,
            [of_first](uint64_t i, uint32_t of_step, Index * at)
                __attribute__((always_inline)) { KeepIndexStep(of_first + i, of_step, at); },
            [of_first](uint64_t i) __attribute__((always_inline)) { return static_cast<Index>(of_first + i); });
      });
}

template <class Index>
void KeepIndices(const KeptPart& part, uint64_t of_first, void* out) {
  (part.stream ? KeepPartIndices<Index, true> : KeepPartIndices<Index, false>)(part, of_first,
                                                                               static_cast<Index*>(out));
}

// ---- The table -----------------------------------------------------------------------------------------------------
constexpr CompactTable MakeTable() {
  CompactTable table = {};
#define PREFIXD_SET(name, type)                               \
  table.select[static_cast<int>(DType::name)] = Select<type>; \
  table.keep[static_cast<int>(DType::name)] = Keep<Unsigned<type>>;
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  table.pack_bytes = PackBytes;
  table.copy_bits = CopyBits;
  table.keep_indices_32 = KeepIndices<uint32_t>;
  table.keep_indices_64 = KeepIndices<uint64_t>;
  return table;
}

}  // namespace

constinit const CompactTable kCompacts = MakeTable();

}  // namespace prefixd::cpu::PREFIXD_ISA
