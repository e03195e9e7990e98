// Scan and reduce of floats by operators whose results depend on the order.
#include "kernels/cpu/simd/ordered_scans.h"

#include "kernels/cpu/simd/array_lanes.h"
#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/float_operators.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/tables.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Items: elements of In as O's items.
template <class Items, class O, class In, class Out>
void ScanArrays(const ScanPart& part, const PartArrays& arrays, const void* prefix) {
  ScanArraysInLanes<LaneElements<Accumulator<Out>, O>, O, In, Out>(part, arrays, prefix, ScanOrdered<Items, O>);
}

template <class Items, class O, class In, class Out>
void ReduceArrays(const ScanPart& part, const PartArrays& arrays, const void* start, const void* empty) {
  using T = Accumulator<Out>;
  const auto item = O::Load(BitsOf<T>(start));
  ReduceArraysInLanes<LaneElements<T, O>, O, In, Out>(
      part, arrays, item, empty, [&](const ScanPart& array) { return ReduceArray<Items, O, In>(array, item); });
}

template <class Items, class O, class In, class Out>
constexpr ScanFunctions FunctionsFor() {
  return {.reduce = ReduceOrdered<Items, O>,
          .add = AddTiles<O, typename Items::Item>,
          .scan = ScanOrdered<Items, O>,
          .scan_arrays = ScanArrays<Items, O, In, Out>,
          .reduce_arrays = ReduceArrays<Items, O, In, Out>};
}

template <Op kOp, class In, class Out>
constexpr ScanFunctions FunctionsOf() {
  using T = Accumulator<Out>;
  using O = decltype(FloatOperatorOf<kOp, T>());
  if constexpr (kOp == Op::kLogAddExp) {
    return FunctionsFor<LoadedElements<In, T, O, Out>, O, In, Out>();
  } else {
    return FunctionsFor<Elements<In, T, Out>, O, In, Out>();
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
