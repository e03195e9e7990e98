// Elements as ordered_scans.h scans them: by themselves, converted where it is made in another type, or as items that
// an operator makes of them.
#ifndef PREFIXD_KERNELS_CPU_SIMD_ELEMENTS_H_
#define PREFIXD_KERNELS_CPU_SIMD_ELEMENTS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/ordered_scans.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Elements of In as items of T; results are stored as elements of To.
template <class In, class T, class To = T>
class Elements {
 public:
  using Element = T;
  using Stored = To;
  using Item = T;
  using V = Vector<T>;

  explicit Elements(const ScanPart& part)
      : in_(static_cast<const In*>(part.in)), next_(static_cast<const In*>(part.next)) {
    // Where there is no other part to fetch, this one's items a little ahead: a leaf's loads begin at once and end at
    // once, which is not what the hardware foresees.
    constexpr int kAhead = 8192 / sizeof(In);
    if (next_ == in_) next_ += part.reverse ? -kAhead : kAhead;
  }

  template <bool kReverse>
  PREFIXD_INLINE void LoadQuad(uint64_t first, int q, V (&v)[4]) const {
    PREFIXD_ISA::LoadQuad<kReverse, T>(in_ + first, q, v);
  }
  T At(uint64_t i) const { return static_cast<T>(in_[i]); }
  PREFIXD_INLINE void Ahead(uint64_t first) const { Fetch<kLeafItems * sizeof(In)>(next_ + first); }
  template <class I>
  static PREFIXD_INLINE I ResultOf(I item) {
    return item;
  }

 private:
  const In* const in_;
  const In* next_;
};

// The same as items of the operator O, which has O::Load(element) and O::ResultOf(item), of vectors too.
template <class In, class T, class O, class To = T>
class LoadedElements {
 public:
  using Element = T;
  using Stored = To;
  using Item = decltype(O::Load(T()));
  using V = decltype(O::Load(Vector<T>()));

  explicit LoadedElements(const ScanPart& part) : elements_(part) {}

  template <bool kReverse>
  PREFIXD_INLINE void LoadQuad(uint64_t first, int q, V (&v)[4]) const {
    Vector<T> elements[4];
    elements_.template LoadQuad<kReverse>(first, q, elements);
    for (int j = 0; j < 4; ++j) v[j] = O::Load(elements[j]);
  }
  Item At(uint64_t i) const { return O::Load(elements_.At(i)); }
  PREFIXD_INLINE void Ahead(uint64_t first) const { elements_.Ahead(first); }
  template <class I>
  static PREFIXD_INLINE auto ResultOf(I item) {
    return O::ResultOf(item);
  }

 private:
  const Elements<In, T> elements_;
};

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_ELEMENTS_H_
