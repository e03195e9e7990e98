// Scan and reduce of floats by operators whose results depend on the order.
#include "kernels/cpu/simd/ordered_scans.h"

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

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
