// Scan and reduce of floats by operators whose results depend on the order.
#include "kernels/cpu/simd/ordered_scans.h"

#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Elements, converted.
template <class In, class T>
class Elements {
 public:
  using Element = T;
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

template <Op kOp, class In, class T>
constexpr ScanFunctions FunctionsOf() {
  using O = decltype(FloatOperatorOf<kOp, T>());
  return {ReduceOrdered<Elements<In, T>, O>, AddTiles<O, T>, ScanOrdered<Elements<In, T>, O>};
}

template <class In, class T>
constexpr void SetScans(ScanTable* table) {
  if constexpr (kIsFloating<T>) {
    auto& of = table->of[static_cast<int>(kDTypeOf<In>)][static_cast<int>(kDTypeOf<T>)];
    of[static_cast<int>(Op::kSum)] = FunctionsOf<Op::kSum, In, T>();
    of[static_cast<int>(Op::kProd)] = FunctionsOf<Op::kProd, In, T>();
    of[static_cast<int>(Op::kLogAddExp)] = FunctionsOf<Op::kLogAddExp, In, T>();
  }
}

constexpr ScanTable MakeScans() {
  ScanTable table = {};
#define PREFIXD_SET(name, type, out_name, out_type) SetScans<type, out_type>(&table);
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_SET)
#undef PREFIXD_SET
  return table;
}

}  // namespace

constinit const ScanTable kOrderedScans = MakeScans();

}  // namespace prefixd::cpu::PREFIXD_ISA
