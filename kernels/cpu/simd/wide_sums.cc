// Sums in more precision than their elements': of f32 in f64, of f64 in pairs of a sum and its error.
#include "kernels/cpu/simd/compensated.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/ordered_scans.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Elements, each as a sum without an error.
class Pairs {
 public:
  using Element = double;
  using Stored = double;
  using Item = Compensated<double>;
  using V = Compensated<Vector<double>>;

  explicit Pairs(const ScanPart& part) : elements_(part) {}

  template <bool kReverse>
  PREFIXD_INLINE void LoadQuad(uint64_t first, int q, V (&v)[4]) const {
    Vector<double> elements[4];
    elements_.template LoadQuad<kReverse>(first, q, elements);
    for (int j = 0; j < 4; ++j) v[j] = CompensatedOf(elements[j]);
  }
  Item At(uint64_t i) const { return CompensatedOf(elements_.At(i)); }
  PREFIXD_INLINE void Ahead(uint64_t first) const { elements_.Ahead(first); }
  template <class U>
  static PREFIXD_INLINE U ResultOf(Compensated<U> v) {
    return Rounded(v);
  }

 private:
  const Elements<double, double> elements_;
};

template <class Items, class O>
constexpr ScanFunctions FunctionsOf() {
  return {ReduceOrdered<Items, O>, AddTiles<O, typename Items::Item>, ScanOrdered<Items, O>};
}

constexpr WideSumTable MakeWideSums() {
  WideSumTable table = {};
  table.of[static_cast<int>(DType::kF32)] = FunctionsOf<Elements<float, double, float>, Plus<double>>();
  table.of[static_cast<int>(DType::kF64)] = FunctionsOf<Pairs, AddPairs>();
  return table;
}

}  // namespace

constinit const WideSumTable kWideSums = MakeWideSums();

}  // namespace prefixd::cpu::PREFIXD_ISA
