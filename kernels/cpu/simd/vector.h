// Vectors of the instruction set that a file is compiled for: PREFIXD_ISA names it, and is the namespace of all that is
// made here. GCC's vector extensions do the arithmetic; intrinsics stand only where an instruction set has an
// instruction that the compiler does not find.
//
// Everything is inlined by force or has internal linkage. A function that the linker could share between files would
// exist once, with the instructions of any of them, and end the process on a machine without them. So the files that
// include this one use no function of the standard library that is not a builtin.
#ifndef PREFIXD_KERNELS_CPU_SIMD_VECTOR_H_
#define PREFIXD_KERNELS_CPU_SIMD_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PREFIXD_INLINE __attribute__((always_inline)) inline

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// Vectors are made of blocks, within which bytes move freely.
constexpr int kBlockBytes = 16;
constexpr int kBlocks = kVectorBytes / kBlockBytes;

template <class T, int kBytes = kVectorBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
// Asked for with another T, an overload is left out: compilers may put T in before they look at the constraints.
template <class T>
requires std::is_arithmetic_v<T>
using Vector = typename VectorOf<T>::type;
using Bytes = Vector<uint8_t>;

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// The type of a vector's lanes.
template <class V>
using Lane = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<V&>()[0])>>;

// The integers of kBytes. Ordered are those whose larger one is found soonest.
template <int kBytes>
struct IntegersOf;
template <>
struct IntegersOf<1> {
  using Signed = int8_t;
  using Unsigned = uint8_t;
  using Ordered = uint8_t;  // Every x86 finds the maximum of these lanes in one instruction.
};
template <>
struct IntegersOf<2> {
  using Signed = int16_t;
  using Unsigned = uint16_t;
  using Ordered = int16_t;
};
template <>
struct IntegersOf<4> {
  using Signed = int32_t;
  using Unsigned = uint32_t;
  using Ordered = int32_t;
};
template <>
struct IntegersOf<8> {
  using Signed = int64_t;
  using Unsigned = uint64_t;
  using Ordered = int64_t;
};
template <class T>
using Unsigned = typename IntegersOf<sizeof(T)>::Unsigned;
template <class T>
using Signed = typename IntegersOf<sizeof(T)>::Signed;
template <class T>
using Ordered = typename IntegersOf<sizeof(T)>::Ordered;

template <class T>
PREFIXD_INLINE Vector<T> Load(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

// The bits of what is there, of which there are as many.
template <class T>
PREFIXD_INLINE T BitsOf(const void* from) {
  T bits;
  __builtin_memcpy(&bits, from, sizeof(bits));
  return bits;
}

template <class V>
PREFIXD_INLINE void Store(Lane<V>* to, V v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

PREFIXD_INLINE bool IsAligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kVectorBytes == 0; }

// Stores past the caches. Needs: `to` is aligned to a vector; FinishStreaming before another thread reads it.
template <class V>
PREFIXD_INLINE void Stream(Lane<V>* to, V v) {
#if defined(__AVX512BW__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(v));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(v));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(v));
#else
  Store(to, v);
#endif
}

PREFIXD_INLINE void FinishStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <bool kStream, class V>
PREFIXD_INLINE void StoreOrStream(Lane<V>* to, V v) {
  if constexpr (kStream) {
    Stream(to, v);
  } else {
    Store(to, v);
  }
}

// Brings kBytes to the second-level cache. Any address will do: what is not there is left alone.
template <int kBytes>
PREFIXD_INLINE void Fetch(const void* from) {
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(static_cast<const char*>(from) + i, /*rw=*/0, /*locality=*/2);
}

template <class T>
requires std::is_arithmetic_v<T> PREFIXD_INLINE Vector<T> Splat(T x) {
  return x - Vector<T>{};  // x - (+0) has the bits of x, also where x is -0.
}

template <class V>
PREFIXD_INLINE Lane<V> LaneAt(V v, int lane) {
  return v[lane];
}

// Lane i of the result is lane kFrom(i) of a and b, as if b stood behind a.
template <auto kFrom, class V>
PREFIXD_INLINE V Shuffle(V a, V b) {
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, kFrom(i)...);
  }
  (std::make_integer_sequence<int, kLanes<Lane<V>>>{});
}

// Lanes of each block move up by kBytes; zeros come in.
template <int kBytes, class V>
PREFIXD_INLINE V ShiftInBlocks(V v) {
#if defined(__AVX512BW__)
  return reinterpret_cast<V>(_mm512_bslli_epi128(reinterpret_cast<__m512i>(v), kBytes));
#elif defined(__AVX2__)
  return reinterpret_cast<V>(_mm256_slli_si256(reinterpret_cast<__m256i>(v), kBytes));
#elif defined(__SSE2__)
  return reinterpret_cast<V>(_mm_slli_si128(reinterpret_cast<__m128i>(v), kBytes));
#else
  constexpr auto kFrom = [](int i) { return i < kBytes ? kVectorBytes + i : i - kBytes; };
  return reinterpret_cast<V>(Shuffle<kFrom>(reinterpret_cast<Bytes>(v), Bytes{}));
#endif
}

// Blocks move up by kCount; zeros come in.
template <int kCount, class V>
PREFIXD_INLINE V ShiftBlocks([[maybe_unused]] V v) {
#if defined(__AVX512BW__)
  const auto words = reinterpret_cast<__m512i>(v);
  return reinterpret_cast<V>(_mm512_alignr_epi64(words, _mm512_setzero_si512(), 8 - 2 * kCount));
#elif defined(__AVX2__)
  const auto words = reinterpret_cast<__m256i>(v);
  return reinterpret_cast<V>(_mm256_permute2x128_si256(words, words, 0x08));
#else
  return V{};
#endif
}

// Lanes move up by one; the last of `before` comes in.
template <class V>
PREFIXD_INLINE V ShiftIn(V before, V v) {
  [[maybe_unused]] constexpr int kSize = sizeof(Lane<V>);
#if defined(__AVX512BW__)
  const auto low = reinterpret_cast<__m512i>(before);
  const auto high = reinterpret_cast<__m512i>(v);
  if constexpr (kSize == 8) return reinterpret_cast<V>(_mm512_alignr_epi64(high, low, 7));
  if constexpr (kSize == 4) return reinterpret_cast<V>(_mm512_alignr_epi32(high, low, 15));
  if constexpr (kSize < 4) {
    const __m512i blocks_before = _mm512_alignr_epi64(high, low, 6);
    return reinterpret_cast<V>(_mm512_alignr_epi8(high, blocks_before, kBlockBytes - kSize));
  }
#elif defined(__AVX2__)
  const auto low = reinterpret_cast<__m256i>(before);
  const auto high = reinterpret_cast<__m256i>(v);
  const __m256i blocks_before = _mm256_permute2x128_si256(low, high, 0x21);
  return reinterpret_cast<V>(_mm256_alignr_epi8(high, blocks_before, kBlockBytes - kSize));
#elif defined(__SSE2__)
  return reinterpret_cast<V>(_mm_or_si128(_mm_slli_si128(reinterpret_cast<__m128i>(v), kSize),
                                          _mm_srli_si128(reinterpret_cast<__m128i>(before), kBlockBytes - kSize)));
#else
  constexpr int kL = kLanes<Lane<V>>;
  constexpr auto kFrom = [](int i) { return kL - 1 + i; };
  return Shuffle<kFrom>(before, v);
#endif
}

// Lanes in the opposite order.
template <class V>
PREFIXD_INLINE V Reversed(V v) {
#if defined(__SSE2__) && !defined(__AVX2__)
  if constexpr (sizeof(Lane<V>) <= 2) {  // SSE2 has no shuffle of bytes, and the compiler moves them one by one.
    auto words = reinterpret_cast<__m128i>(v);
    if constexpr (sizeof(Lane<V>) == 1) words = _mm_or_si128(_mm_slli_epi16(words, 8), _mm_srli_epi16(words, 8));
    words = _mm_shufflehi_epi16(_mm_shufflelo_epi16(words, 0x1b), 0x1b);
    return reinterpret_cast<V>(_mm_shuffle_epi32(words, 0x4e));
  }
#endif
  constexpr auto kFrom = [](int i) { return kLanes<Lane<V>> - 1 - i; };
  return Shuffle<kFrom>(v, v);
}

// The last lane, in every lane.
template <class V>
PREFIXD_INLINE V SplatLast(V v) {
  constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Lane<V>));
  constexpr auto kLastOfBlock = [](int i) { return i | (kPerBlock - 1); };
  const V last = Shuffle<kLastOfBlock>(v, v);
#if defined(__AVX512BW__)
  const auto words = reinterpret_cast<__m512i>(last);
  return reinterpret_cast<V>(_mm512_shuffle_i64x2(words, words, 0xff));
#elif defined(__AVX2__)
  const auto words = reinterpret_cast<__m256i>(last);
  return reinterpret_cast<V>(_mm256_permute2x128_si256(words, words, 0x11));
#else
  return last;
#endif
}

// Bit i is set where flag i is.
template <class F>
PREFIXD_INLINE uint64_t Bits(F flags) {
  [[maybe_unused]] constexpr size_t kSize = sizeof(Lane<F>);
#if defined(__AVX512BW__)
  const auto v = reinterpret_cast<__m512i>(flags);
  if constexpr (kSize == 1) return _mm512_movepi8_mask(v);
  if constexpr (kSize == 2) return _mm512_movepi16_mask(v);
  if constexpr (kSize == 4) return _mm512_movepi32_mask(v);
  if constexpr (kSize == 8) return _mm512_movepi64_mask(v);
#elif defined(__AVX2__)
  const auto v = reinterpret_cast<__m256i>(flags);
  if constexpr (kSize == 1) return static_cast<uint32_t>(_mm256_movemask_epi8(v));
  if constexpr (kSize == 2) {
    return static_cast<uint32_t>(
        _mm_movemask_epi8(_mm_packs_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1))));
  }
  if constexpr (kSize == 4) return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(v)));
  if constexpr (kSize == 8) return static_cast<uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(v)));
#elif defined(__SSE2__)
  const auto v = reinterpret_cast<__m128i>(flags);
  if constexpr (kSize == 1) return static_cast<uint32_t>(_mm_movemask_epi8(v));
  if constexpr (kSize == 2) return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(v, _mm_setzero_si128())));
  if constexpr (kSize == 4) return static_cast<uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(v)));
  if constexpr (kSize == 8) return static_cast<uint32_t>(_mm_movemask_pd(reinterpret_cast<__m128d>(v)));
#else
  uint64_t bits = 0;
  for (int i = 0; i < kLanes<Lane<F>>; ++i) bits |= static_cast<uint64_t>(flags[i] & 1) << i;
  return bits;
#endif
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_VECTOR_H_
