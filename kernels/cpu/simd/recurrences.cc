// Scan by a linear recurrence: each item is a step, and steps combine like elements.
#include "kernels/cpu/simd/array_lanes.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/ordered_scans.h"
#include "kernels/cpu/simd/step.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// kHasCoefficients: each item has its own. Else they share one.
template <class T, bool kHasCoefficients>
class Steps {
 public:
  using Element = T;
  using Stored = T;
  using Item = Step<T>;
  using V = Step<Vector<T>>;

  explicit Steps(const ScanPart& part)
      : terms_(static_cast<const T*>(part.in)),
        coefficients_(static_cast<const T*>(part.coefficients)),
        coefficient_(kHasCoefficients ? T() : BitsOf<T>(part.coefficient)),
        ahead_((part.reverse ? -8192 : 8192) / static_cast<int64_t>(sizeof(T))) {}

  template <bool kReverse>
  PREFIXD_INLINE void LoadQuad(uint64_t first, int q, V (&v)[4]) const {
    Vector<T> terms[4], coefficients[4];
    PREFIXD_ISA::LoadQuad<kReverse, T>(terms_ + first, q, terms);
    if constexpr (kHasCoefficients) PREFIXD_ISA::LoadQuad<kReverse, T>(coefficients_ + first, q, coefficients);
    for (int j = 0; j < 4; ++j) v[j] = {kHasCoefficients ? coefficients[j] : Splat(coefficient_), terms[j]};
  }
  Item At(uint64_t i) const { return {kHasCoefficients ? coefficients_[i] : coefficient_, terms_[i]}; }
  PREFIXD_INLINE void Ahead(uint64_t first) const {
    Fetch<kLeafItems * sizeof(T)>(terms_ + first + ahead_);
    if constexpr (kHasCoefficients) Fetch<kLeafItems * sizeof(T)>(coefficients_ + first + ahead_);
  }
  template <class U>
  static PREFIXD_INLINE U ResultOf(Step<U> step) {
    return step.term;
  }

 private:
  const T* const terms_;
  const T* const coefficients_;
  const T coefficient_;
  const int64_t ahead_;
};

template <class T>
void Scan(const ScanPart& part, void* prefix) {
  part.coefficients != nullptr ? ScanOrdered<Steps<T, true>, Follow<T>>(part, prefix)
                               : ScanOrdered<Steps<T, false>, Follow<T>>(part, prefix);
}

template <class T>
void Reduce(const ScanPart& part, void* values) {
  part.coefficients != nullptr ? ReduceOrdered<Steps<T, true>, Follow<T>>(part, values)
                               : ReduceOrdered<Steps<T, false>, Follow<T>>(part, values);
}

template <class T, bool kHasCoefficients>
void ScanArrays(const ScanPart& part, const PartArrays& arrays, const void* prefix) {
  ScanArraysInLanes<LaneSteps<T, kHasCoefficients>, Follow<T>, T, T>(
      part, arrays, prefix, ScanOrdered<Steps<T, kHasCoefficients>, Follow<T>>);
}
template <class T>
void ScanArrays(const ScanPart& part, const PartArrays& arrays, const void* prefix) {
  part.coefficients != nullptr ? ScanArrays<T, true>(part, arrays, prefix) : ScanArrays<T, false>(part, arrays, prefix);
}

template <class T>
constexpr void SetRecurrence(RecurrenceTable* table) {
  table->of[static_cast<int>(kDTypeOf<T>)] = {
      .reduce = Reduce<T>, .add = AddTiles<Follow<T>, Step<T>>, .scan = Scan<T>, .scan_arrays = ScanArrays<T>};
}

constexpr RecurrenceTable MakeRecurrences() {
  RecurrenceTable table = {};
  SetRecurrence<float>(&table);
  SetRecurrence<double>(&table);
  return table;
}

}  // namespace

constinit const RecurrenceTable kRecurrences = MakeRecurrences();

}  // namespace prefixd::cpu::PREFIXD_ISA
