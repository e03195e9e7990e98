#include "server/work/work.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/status.h"
#include "server/work/compact.h"
#include "server/work/difference.h"
#include "server/work/glue.h"
#include "server/work/reduce.h"
#include "server/work/scan.h"

namespace prefixd {
namespace {

// Overloads for a spec that needs more than its type, operator and algorithm to be one.
template <class S>
void CompleteSample(S* /*spec*/) {}
void CompleteSample(ScanSpec* spec) {
  spec->has_coefficients = IsRecurrence(Primitive::kScan, spec->dtype, spec->output(), spec->op);
}
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

// A launch with its wait, and a byte that goes through a lane, in or out. Devices differ, most in the same ratio.
constexpr double kLaunchNs = 5'000;
constexpr double kNsPerByte = 0.1;
// One that stays on the device: of a card, of the host.
constexpr double kNsPerCardByte = 0.001;
constexpr double kNsPerHostByte = 0.05;
// One addition of an algorithm whose work grows with the square.
constexpr double kNsPerStep = 1;
constexpr double kMaxEstimateNs = 1e15;

}  // namespace

int64_t Work::EstimateNs(uint64_t num_items, bool resident) const {
  const auto items = static_cast<double>(num_items);
  const uint64_t coefficient_bytes = shape_.has_coefficients ? item_bytes() : 0;
  const auto bytes_per_item = static_cast<double>(item_bytes() + coefficient_bytes + reply_bytes_per_item());
  const bool is_card = device_.info().direct_bytes != DeviceInfo::kHostMemory;
  const double ns_per_byte = !resident ? kNsPerByte : is_card ? kNsPerCardByte : kNsPerHostByte;
  double ns = kLaunchNs + items * bytes_per_item * ns_per_byte;
  // Those are the ones that have a longest array.
  if (spec_ && device_.RowOf(PrimitiveOf(*spec_), AlgorithmOf(*spec_)).max_items > 0)
    ns += items * items / 2 * kNsPerStep;
  return static_cast<int64_t>(std::min(ns, kMaxEstimateNs));
}

uint64_t Work::NumOutputs(uint64_t num_items, uint64_t num_offsets) const {
  if (!shape_.is_reduced) return num_items + (shape_.has_initial ? 1 : 0);
  return shape_.has_offsets ? num_offsets - 1 : AxisOf(*spec_)->NumArrays(num_items);
}

absl::Status Work::CheckBeginning(uint64_t num_items) const {
  if (!shape_.row_items) return CheckLength(num_items);
  if (*shape_.row_items == 0) return CheckRows(*AxisOf(*spec_), num_items);
  return device_.CheckLength(PrimitiveOf(*spec_), AlgorithmOf(*spec_), std::min(num_items, *shape_.row_items));
}

absl::Status Work::CheckLength(uint64_t num_items) const {
  if (!spec_) return absl::OkStatus();
  const std::optional<Axis> axis = AxisOf(*spec_);
  if (axis) PREFIXD_RETURN_IF_ERROR(CheckAxis(*axis, num_items));
  if (axis && shape_.is_reduced && axis->along == Axis::Along::kColumn && num_items == 0) {
    return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "spec.axis",
                 StrCat("the matrix has no rows, so its ", axis->row_items,
                        " columns have no elements that could be reduced: expected at least one row"));
  }
  return device_.CheckLength(PrimitiveOf(*spec_), AlgorithmOf(*spec_),
                             axis ? axis->ItemsOfArray(num_items) : num_items);
}

LaneBatch BatchOf(const std::optional<Axis>& axis, const WorkArrays& arrays) {
  if (arrays.offsets != nullptr) return {.num_items = arrays.num_items, .num_arrays = arrays.num_offsets - 1};
  if (!axis || arrays.is_part || arrays.num_items == 0)
    return {.num_items = arrays.num_items, .num_arrays = arrays.num_arrays};
  return {.num_items = axis->ItemsOfArray(arrays.num_items),
          .num_arrays = axis->NumArrays(arrays.num_items),
          .order = axis->along == Axis::Along::kRow ? BatchOrder::kOneByOne : BatchOrder::kInterleaved};
}

absl::Status ColumnsOnStream(DType input, DType output) {
  return Error(absl::StatusCode::kFailedPrecondition, "AXIS_ON_STREAM", "spec.axis",
               StrCat("every column goes on with each row that comes, so axis 0 needs the whole matrix, and only rows "
                      "(axis 1) are streamed: use the unary call, for at most ",
                      kMaxReplyPayloadBytes / std::max(SizeOf(input), SizeOf(output)), " elements of ", Name(input),
                      ", or a resident array with a sink"));
}

absl::Status SegmentsOnStream(DType input, DType output) {
  return Error(absl::StatusCode::kFailedPrecondition, "SEGMENTS_ON_STREAM", "segment_offsets",
               StrCat("segments need the whole array: use the unary call, for at most ",
                      kMaxReplyPayloadBytes / std::max(SizeOf(input), SizeOf(output)), " elements of ", Name(input),
                      ", or resident arrays"));
}

absl::StatusOr<std::unique_ptr<const Work>> MakeWork(const Device& device, Operation operation) {
  if (const auto* const scan = std::get_if<ScanSpec>(&operation)) PREFIXD_RETURN_IF_ERROR(CheckScan(*scan));
  if (const auto* const reduce = std::get_if<ReduceSpec>(&operation)) PREFIXD_RETURN_IF_ERROR(CheckReduce(*reduce));
  if (const std::optional<Spec> spec = SpecOf(operation)) {
    const Primitive primitive = PrimitiveOf(*spec);
    PREFIXD_ASSIGN_OR_RETURN(
        const Algorithm algorithm,
        device.Resolve(primitive, InputOf(*spec), OutputOf(*spec), OpOf(*spec).value_or(Op::kSum), AlgorithmOf(*spec),
                       std::visit([](const auto& one) { return PrecisionOf(one); }, *spec)));
    std::visit(
        [&](auto& one) {
          if constexpr (requires { one.algorithm = algorithm; }) one.algorithm = algorithm;
        },
        operation);
  }
  std::unique_ptr<const Work> work = std::visit([&](const auto& one) { return MakeWorkOf(device, one); }, operation);
  if (const auto num_items = NumItemsOf(operation)) {
    PREFIXD_RETURN_IF_ERROR(work->CheckBeginning(*num_items));
    if (work->shape().row_items) PREFIXD_RETURN_IF_ERROR(CheckRows(*AxisOf(operation), *num_items));
  }
  return work;
}

Spec SampleSpec(Primitive primitive, DType dtype, Op op, const Algorithm& algorithm) {
  return SampleAt(static_cast<size_t>(primitive), std::make_index_sequence<std::variant_size_v<Spec>>(), dtype, op,
                  algorithm);
}

}  // namespace prefixd
