// Items of one type as items of another, in vectors: as they are loaded, as results are stored, and many at once.
//
// Floats of 16 bits have no vectors of their own. They are loaded as vectors of f32, and stored from them.
#ifndef PREFIXD_KERNELS_CPU_SIMD_CONVERT_H_
#define PREFIXD_KERNELS_CPU_SIMD_CONVERT_H_

#include "kernels/cpu/simd/vector.h"
#include "kernels/narrow_float.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Half a vector, which has as many lanes as a vector has of items that are twice as long.
template <class T>
using HalfVector = typename VectorOf<T, kVectorBytes / 2>::type;

// N: Float16 or BFloat16.
template <class N>
PREFIXD_INLINE Vector<float> Widened(HalfVector<uint16_t> bits) {
#if defined(__AVX512BW__)
  if constexpr (std::is_same_v<N, Float16>) {
    return reinterpret_cast<Vector<float>>(_mm512_cvtph_ps(reinterpret_cast<__m256i>(bits)));
  }
#elif defined(__F16C__)
  if constexpr (std::is_same_v<N, Float16>) {
    return reinterpret_cast<Vector<float>>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(bits)));
  }
#endif
  return narrow_float::Widened<N::kFraction, Vector<float>>(__builtin_convertvector(bits, Vector<uint32_t>));
}

// Needs: NaNs are canonical.
template <class N>
PREFIXD_INLINE HalfVector<uint16_t> Narrowed(Vector<float> items) {
#if defined(__AVX512BW__)
  if constexpr (std::is_same_v<N, Float16>) {
    return reinterpret_cast<HalfVector<uint16_t>>(
        _mm512_cvtps_ph(reinterpret_cast<__m512>(items), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
#elif defined(__F16C__)
  if constexpr (std::is_same_v<N, Float16>) {
    return reinterpret_cast<HalfVector<uint16_t>>(
        _mm256_cvtps_ph(reinterpret_cast<__m256>(items), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  return __builtin_convertvector(narrow_float::Narrowed<N::kFraction, Vector<float>, Vector<uint32_t>>(items),
                                 HalfVector<uint16_t>);
}

// Loads as many items of In as there are lanes of T, converted.
template <class T, class In>
PREFIXD_INLINE Vector<T> LoadAs(const In* from) {
  if constexpr (std::is_same_v<In, T>) {
    return Load(from);
  } else if constexpr (kIsNarrowFloat<In>) {
    static_assert(std::is_same_v<T, float>);
    return Widened<In>(BitsOf<HalfVector<uint16_t>>(from));
  } else {
    typedef In Items __attribute__((vector_size(sizeof(In) * kLanes<T>)));
    Items items;
    __builtin_memcpy(&items, from, sizeof(items));
    return __builtin_convertvector(items, Vector<T>);
  }
}

// A vector's lanes as items half as long: of f64 as f32, of f32 as a float of 16 bits, whose bits they are then. Needs:
// NaNs are canonical.
template <class To, class V>
PREFIXD_INLINE auto Halved(V v) {
  if constexpr (kIsNarrowFloat<To>) {
    return Narrowed<To>(v);
  } else {
    return __builtin_convertvector(v, HalfVector<To>);
  }
}

// Copies count items, converted. Needs: NaNs that become floats of 16 bits are canonical.
template <class In, class Out>
__attribute__((noinline)) void Convert(const In* in, int count, Out* out) {
  int i = 0;
  if constexpr (kIsNarrowFloat<In> && std::is_same_v<Out, float>) {
    for (; i + kLanes<float> <= count; i += kLanes<float>) Store(out + i, LoadAs<float>(in + i));
  } else if constexpr (std::is_same_v<In, float> && kIsNarrowFloat<Out>) {
    for (; i + kLanes<float> <= count; i += kLanes<float>) {
      const auto narrow = Narrowed<Out>(Load(in + i));
      __builtin_memcpy(out + i, &narrow, sizeof(narrow));
    }
  }
  for (; i < count; ++i) out[i] = static_cast<Out>(in[i]);
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_CONVERT_H_
