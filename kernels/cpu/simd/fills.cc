// Items that their index alone defines: kernels/NUMERICS.md says which.
#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/glue.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// ---- The same, and one step more -----------------------------------------------------------------------------------
template <class T>
void Constant(const FillPart& part, uint64_t /*first*/, uint64_t count, T* to) {
  const T value = Canonical(As<T>(part.value));
  for (uint64_t i = 0; i < count; ++i) to[i] = value;
}

template <class T>
void Iota(const FillPart& part, uint64_t first, uint64_t count, T* to) {
  using W = Wraps<T>;
  const W start = As<T>(part.value);
  const W step = As<T>(part.step);
  if constexpr (!kIsFloating<T>) {
    const W before = start + static_cast<W>(first) * step;
    for (uint64_t i = 0; i < count; ++i) to[i] = static_cast<T>(before + static_cast<W>(i) * step);
  } else if (first < (uint64_t{1} << 52)) {
    // A double has these indices exactly, so that they are rounded once, to T; and they are found in vectors.
    const auto before = static_cast<double>(first);
    for (int32_t i = 0; i < static_cast<int32_t>(count); ++i) {
      to[i] = Canonical(start + static_cast<T>(before + static_cast<double>(i)) * step);
    }
  } else {
    for (uint64_t i = 0; i < count; ++i) to[i] = Canonical(start + static_cast<T>(first + i) * step);
  }
}

// ---- Random --------------------------------------------------------------------------------------------------------
// Philox4x32-10 in lanes of 64 bits, of which the lower half counts: multiplication ignores what is above.
using Words = Vector<uint64_t>;
constexpr int kGroup = kLanes<uint64_t>;  // Blocks of 16 bytes that are drawn together.
constexpr uint64_t kDrawBytes = 16;

PREFIXD_INLINE Words ProductOfLowHalves(Words a, Words b) {
#if defined(__AVX512BW__)
  return reinterpret_cast<Words>(_mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Words>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<Words>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

// The bytes of kGroup blocks from `block` on, in two vectors.
PREFIXD_INLINE void Draw(uint64_t block, uint64_t seed, Words* first, Words* second) {
  Words c0 = Splat(block);
  for (int i = 0; i < kGroup; ++i) c0[i] += i;
  Words c1 = c0 >> 32, c2 = {}, c3 = {};
  auto k0 = static_cast<uint32_t>(seed);
  auto k1 = static_cast<uint32_t>(seed >> 32);
  PREFIXD_UNROLL
  for (int round = 0; round < 10; ++round) {
    const Words p0 = ProductOfLowHalves(c0, Splat(uint64_t{0xd2511f53}));
    const Words p1 = ProductOfLowHalves(c2, Splat(uint64_t{0xcd9e8d57}));
    c0 = (p1 >> 32) ^ c1 ^ Splat(uint64_t{k0});
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ Splat(uint64_t{k1});
    c3 = p0;
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  const Words low = (c0 & 0xffffffff) | (c1 << 32);
  const Words high = (c2 & 0xffffffff) | (c3 << 32);
  constexpr auto kFirst = [](int i) { return i / 2 + (i % 2) * kGroup; };
  constexpr auto kSecond = [](int i) { return kGroup / 2 + i / 2 + (i % 2) * kGroup; };
  *first = Shuffle<kFirst>(low, high);
  *second = Shuffle<kSecond>(low, high);
}

template <class T>
PREFIXD_INLINE Vector<T> ItemsOf(Words bits) {
  if constexpr (std::is_same_v<T, float>) {
    const auto fractions = reinterpret_cast<Vector<int32_t>>(reinterpret_cast<Vector<uint32_t>>(bits) >> 8);
    return __builtin_convertvector(fractions, Vector<float>) * Splat(0x1p-24f);
  } else if constexpr (std::is_same_v<T, double>) {
    return __builtin_convertvector(reinterpret_cast<Vector<int64_t>>(bits >> 11), Vector<double>) * Splat(0x1p-53);
  } else {
    return reinterpret_cast<Vector<T>>(bits);
  }
}

template <class T>
void Random(const FillPart& part, uint64_t first, uint64_t count, T* to) {
  constexpr uint64_t kBlockItems = kDrawBytes / sizeof(T);
  constexpr uint64_t kItems = kGroup * kBlockItems;
  uint64_t block = first / kBlockItems;
  uint64_t skip = first % kBlockItems;
  const auto draw = [&](T * items) __attribute__((always_inline)) {
    Words front, back;
    Draw(block, part.seed, &front, &back);
    Store(items, ItemsOf<T>(front));
    Store(items + kLanes<T>, ItemsOf<T>(back));
    block += kGroup;
  };
  for (uint64_t i = 0; i < count;) {
    if (skip == 0 && count - i >= kItems) {
      draw(to + i);
      i += kItems;
      continue;
    }
    T items[kItems];
    draw(items);
    for (; skip < kItems && i < count; ++skip, ++i) to[i] = items[skip];
    skip = 0;
  }
}

// ---- Floats of 16 bits ---------------------------------------------------------------------------------------------
// By way of f32, for a NaN becomes canonical on the way back.
template <class N>
void NarrowConstant(const FillPart& part, uint64_t /*first*/, uint64_t count, N* to) {
  const N value(static_cast<float>(As<N>(part.value)));
  for (uint64_t i = 0; i < count; ++i) to[i] = value;
}

// The iota of f32, each item of it rounded.
template <class N>
void NarrowIota(const FillPart& part, uint64_t first, uint64_t count, N* to) {
  constexpr uint64_t kItems = 512;
  float items[kItems];
  FillPart single = part;
  single.value = ValueOf(static_cast<float>(As<N>(part.value)));
  single.step = ValueOf(static_cast<float>(As<N>(part.step)));
  for (uint64_t i = 0; i < count; i += kItems) {
    const uint64_t block = count - i < kItems ? count - i : kItems;
    Iota<float>(single, first + i, block, items);
    Convert(items, static_cast<int>(block), to + i);
  }
}

// The upper bits of random integers, as many as a fraction and its hidden bit are.
template <class N>
void NarrowRandom(const FillPart& part, uint64_t first, uint64_t count, N* to) {
  constexpr int kDigits = N::kFraction + 1;
  constexpr float kLast = 1.0f / (1 << kDigits);
  Random<uint16_t>(part, first, count, reinterpret_cast<uint16_t*>(to));
  for (uint64_t i = 0; i < count; ++i) to[i] = N(static_cast<float>(to[i].bits >> (16 - kDigits)) * kLast);
}

// ---- The table -----------------------------------------------------------------------------------------------------
template <class T, void (*kItems)(const FillPart&, uint64_t, uint64_t, T*)>
void Fill(const FillPart& part) {
  if (!part.stream) return kItems(part, part.first_item, part.num_items, static_cast<T*>(part.out));
  InBlocks(part.out, sizeof(T), part.num_items, [&](uint64_t i, uint64_t count, void* to) {
    kItems(part, part.first_item + i, count, static_cast<T*>(to));
  });
}

template <class Element>
constexpr void SetFills(FillTable* table) {
  const auto set = [table](FillKind kind, void (*fill)(const FillPart&)) {
    table->of[static_cast<int>(kind)][static_cast<int>(kDTypeOf<Element>)] = fill;
  };
  if constexpr (kIsNarrowFloat<Element>) {
    set(FillKind::kConstant, Fill<Element, NarrowConstant<Element>>);
    set(FillKind::kIota, Fill<Element, NarrowIota<Element>>);
    set(FillKind::kRandom, Fill<Element, NarrowRandom<Element>>);
  } else {
    using T = BitsOrFloat<Element>;
    set(FillKind::kConstant, Fill<T, Constant<T>>);
    set(FillKind::kIota, Fill<T, Iota<T>>);
    set(FillKind::kRandom, Fill<T, Random<T>>);
  }
}

constexpr FillTable MakeTable() {
  FillTable table = {};
#define PREFIXD_SET(name, type) SetFills<type>(&table);
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const FillTable kFills = MakeTable();

}  // namespace prefixd::cpu::PREFIXD_ISA
