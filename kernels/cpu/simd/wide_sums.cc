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

template <class Items, class O>
constexpr ScanFunctions FunctionsOf() {
  return {ReduceOrdered<Items, O>, AddTiles<O, typename Items::Item>, ScanOrdered<Items, O>};
}

constexpr WideSumTable MakeWideSums() {
  WideSumTable table = {};
  table.of[static_cast<int>(DType::kF32)] = FunctionsOf<Elements<float, double, float>, Plus<double>>();
  table.of[static_cast<int>(DType::kF64)] = FunctionsOf<LoadedElements<double, double, AddPairs>, AddPairs>();
  return table;
}

}  // namespace

constinit const WideSumTable kWideSums = MakeWideSums();

}  // namespace prefixd::cpu::PREFIXD_ISA
