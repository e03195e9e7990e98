// Difference and copy, and everything that this instruction set has.
#include "kernels/cpu/simd/kernels.h"

#include "kernels/cpu/simd/canonical.h"
#include "kernels/cpu/simd/convert.h"
#include "kernels/cpu/simd/copy_streaming.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// The type in which T is subtracted: signed integers would overflow.
template <class T>
using Subtracts = std::conditional_t<kIsFloating<T>, T, Unsigned<T>>;

template <class V>
PREFIXD_INLINE V Minus(V a, V b) {
  return Canonical(static_cast<V>(a - b));
}
template <class N>
requires kIsNarrowFloat<N> PREFIXD_INLINE N Minus(N a, N b) { return N(static_cast<float>(a) - static_cast<float>(b)); }

// For the items i of [begin, end), whose neighbours in[i + kNeighbour] exist.
template <int kNeighbour, bool kStream, class T>
PREFIXD_INLINE void Subtract(const T* in, T* out, uint64_t begin, uint64_t end) {
  constexpr int kL = kLanes<Accumulator<T>>;
  uint64_t i = begin;
  if constexpr (kStream) {
    for (; i < end && !IsAligned(out + i); ++i) out[i] = Minus(in[i], in[i + kNeighbour]);
  }
  for (; i + kL <= end; i += kL) {
    if constexpr (kIsNarrowFloat<T>) {
      const auto narrow = Halved<T>(Minus(LoadAs<float>(in + i), LoadAs<float>(in + i + kNeighbour)));
      __builtin_memcpy(out + i, &narrow, sizeof(narrow));
    } else {
      StoreOrStream<kStream>(out + i, Minus(Load(in + i), Load(in + i + kNeighbour)));
    }
  }
  for (; i < end; ++i) out[i] = Minus(in[i], in[i + kNeighbour]);
}

template <class T>
void Difference(const void* items, void* results, uint64_t num_items, const void* edge, bool reverse, bool stream) {
  const auto* const in = static_cast<const T*>(items);
  auto* const out = static_cast<T*>(results);
  T outside;
  __builtin_memcpy(&outside, edge, sizeof(outside));
  const uint64_t last = num_items - 1;
  if (reverse) {
    stream ? Subtract<1, true>(in, out, 0, last) : Subtract<1, false>(in, out, 0, last);
    out[last] = Minus(in[last], outside);
  } else {
    out[0] = Minus(in[0], outside);
    stream ? Subtract<-1, true>(in, out, 1, num_items) : Subtract<-1, false>(in, out, 1, num_items);
  }
  if (stream) FinishStreaming();
}

template <class T>
void SubtractEdge(const void* items, void* results, uint64_t num_items, uint64_t pitch, const void* edge) {
  const auto* const in = static_cast<const T*>(items);
  auto* const out = static_cast<T*>(results);
  T outside;
  __builtin_memcpy(&outside, edge, sizeof(outside));
  for (uint64_t i = 0; i < num_items; ++i) out[i * pitch] = Minus(in[i * pitch], outside);
}

constexpr DifferenceTable MakeDifferences() {
  DifferenceTable table = {};
#define PREFIXD_SET(name, type)                                          \
  table.of[static_cast<int>(DType::name)] = Difference<Subtracts<type>>; \
  table.of_edges[static_cast<int>(DType::name)] = SubtractEdge<Subtracts<type>>;
  PREFIXD_FOR_EACH_DTYPE(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const DifferenceTable kDifferences = MakeDifferences();

constinit const Kernels kKernels = {&kUnorderedScans, &kOrderedScans, &kRecurrences, &kWideSums, &kColumns,
                                    &kExtrema,        &kCompacts,     &kDifferences, &kFills,    &kMaps,
                                    &kGathers,        &kTransposes,   CopyStreaming};

}  // namespace prefixd::cpu::PREFIXD_ISA
