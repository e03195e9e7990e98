// Sums in more precision than their elements': of f32 in f64, of f64 in pairs of a sum and its error.
#include "kernels/cpu/simd/array_lanes.h"
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

template <class Items, class O, class In>
void ScanArrays(const ScanPart& part, const PartArrays& arrays, const void* prefix) {
  ScanArraysInLanes<LaneElements<double, O>, O, In, In>(part, arrays, prefix, ScanOrdered<Items, O>);
}

template <class Items, class O, class In>
constexpr ScanFunctions FunctionsOf() {
  return {.reduce = ReduceOrdered<Items, O>,
          .add = AddTiles<O, typename Items::Item>,
          .scan = ScanOrdered<Items, O>,
          .scan_arrays = ScanArrays<Items, O, In>};
}

constexpr WideSumTable MakeWideSums() {
  WideSumTable table = {};
  table.of[static_cast<int>(DType::kF32)] = FunctionsOf<Elements<float, double, float>, Plus<double>, float>();
  table.of[static_cast<int>(DType::kF64)] = FunctionsOf<LoadedElements<double, double, AddPairs>, AddPairs, double>();
  return table;
}

}  // namespace

constinit const WideSumTable kWideSums = MakeWideSums();

}  // namespace prefixd::cpu::PREFIXD_ISA
