// Scan and reduce of floats by operators whose results depend on the order.
#include "kernels/cpu/simd/ordered_scans.h"

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

template <Op kOp, class In, class Out>
constexpr ScanFunctions FunctionsOf() {
  using T = Accumulator<Out>;
  using O = decltype(FloatOperatorOf<kOp, T>());
  if constexpr (kOp == Op::kLogAddExp) {
    return {.reduce = ReduceOrdered<LoadedElements<In, T, O>, O>,
            .add = AddTiles<O, Scaled<T>>,
            .scan = ScanOrdered<LoadedElements<In, T, O, Out>, O>,
            .reduce_arrays = ReduceArraysOrdered<LoadedElements<In, T, O>, O, In, Out>};
  } else {
    return {.reduce = ReduceOrdered<Elements<In, T>, O>,
            .add = AddTiles<O, T>,
            .scan = ScanOrdered<Elements<In, T, Out>, O>,
            .reduce_arrays = ReduceArraysOrdered<Elements<In, T>, O, In, Out>};
  }
}

template <class In, class Out>
constexpr void SetScans(ScanTable* table) {
  if constexpr (kIsFloating<Out>) {
    auto& of = table->of[static_cast<int>(kDTypeOf<In>)][static_cast<int>(kDTypeOf<Out>)];
    of[static_cast<int>(Op::kSum)] = FunctionsOf<Op::kSum, In, Out>();
    of[static_cast<int>(Op::kProd)] = FunctionsOf<Op::kProd, In, Out>();
    of[static_cast<int>(Op::kLogAddExp)] = FunctionsOf<Op::kLogAddExp, In, Out>();
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
