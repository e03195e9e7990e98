#include "server/work/work.h"

#include <array>
#include <utility>
#include <variant>

#include "base/status.h"
#include "server/work/compact.h"
#include "server/work/difference.h"
#include "server/work/reduce.h"
#include "server/work/scan.h"

namespace prefixd {
namespace {

// Overloads for a spec that needs more than its type, operator and algorithm to be one.
template <class S>
void CompleteSample(S* /*spec*/) {}
void CompleteSample(CompactSpec* spec) { spec->predicate = MiddlePredicate(spec->dtype); }

template <class S>
Spec Sample(DType dtype, Op op, const Algorithm& algorithm) {
  S spec = {.dtype = dtype};
  if constexpr (requires { spec.op; }) spec.op = op;
  spec.algorithm = algorithm;
  CompleteSample(&spec);
  return spec;
}

template <size_t... kIndex>
Spec SampleAt(size_t index, std::index_sequence<kIndex...> /*all*/, DType dtype, Op op, const Algorithm& algorithm) {
  using Maker = Spec (*)(DType, Op, const Algorithm&);
  static constexpr std::array<Maker, sizeof...(kIndex)> kMakers = {Sample<std::variant_alternative_t<kIndex, Spec>>...};
  return kMakers[index](dtype, op, algorithm);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Work>> MakeWork(const Device& device, Spec spec) {
  const Primitive primitive = PrimitiveOf(spec);
  PREFIXD_ASSIGN_OR_RETURN(const Algorithm algorithm, device.Resolve(primitive, InputOf(spec), OutputOf(spec),
                                                                     OpOf(spec).value_or(Op::kSum), AlgorithmOf(spec)));
  std::visit([&](auto& one) { one.algorithm = algorithm; }, spec);
  if (const auto num_items = NumItemsOf(spec)) {
    PREFIXD_RETURN_IF_ERROR(device.CheckLength(primitive, algorithm, *num_items));
  }
  return std::visit([&](const auto& one) { return MakeWorkOf(device, one); }, spec);
}

Spec SampleSpec(Primitive primitive, DType dtype, Op op, const Algorithm& algorithm) {
  return SampleAt(static_cast<size_t>(primitive), std::make_index_sequence<std::variant_size_v<Spec>>(), dtype, op,
                  algorithm);
}

}  // namespace prefixd
