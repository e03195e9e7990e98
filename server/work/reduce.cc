#include "server/work/reduce.h"

#include <algorithm>

#include "base/status.h"

namespace prefixd {
namespace {

bool HasManyValues(const ReduceSpec& spec) { return spec.axis || spec.segmented; }

WorkShape ShapeOf(const ReduceSpec& spec) {
  const bool depends_on_cuts = DependsOnCuts(spec.algorithm, spec.op, spec.output());
  if (!HasManyValues(spec)) {
    return {
        .scalar_bytes = sizeof(ReduceState), .carry_bytes = sizeof(ReduceState), .depends_on_cuts = depends_on_cuts};
  }
  const std::optional<uint64_t> row_items = RowItems(spec.axis);
  return {.value_bytes = SizeOf(spec.output()),
          .index_bytes = spec.return_keys ? SizeOf(*spec.key_dtype) : 0,
          .carry_bytes = row_items ? sizeof(ReduceState) : 0,
          .depends_on_cuts = row_items && depends_on_cuts,
          .is_whole = !row_items,
          .row_items = row_items,
          .is_reduced = true,
          .has_offsets = spec.segmented,
          .keys = spec.key_dtype};
}

// The state in front of the first element.
ReduceState StartOf(const ReduceSpec& spec) {
  if (spec.precision == Precision::kNative) {
    if (!spec.init) return {Neutral(spec.op, AccumulatorOf(spec.output()))};
    return {ToAccumulator(*spec.init, spec.output()), 0};
  }
  if (!spec.init) return {Neutral(spec.op, DType::kF64)};
  const double init = spec.dtype == DType::kF32 ? spec.init->As<float>() : spec.init->As<double>();
  return {Value::Of(init), 0};
}

class ReduceWork final : public Work {
 public:
  ReduceWork(const Device& device, const ReduceSpec& spec) : Work(device, spec, ShapeOf(spec)), reduce_(spec) {}

  absl::Status CheckStream() const override {
    if (HasColumns(reduce_.axis)) return ColumnsOnStream(reduce_.dtype, reduce_.output());
    return reduce_.segmented ? SegmentsOnStream(reduce_.dtype, reduce_.output()) : absl::OkStatus();
  }

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    std::byte* const state_out = arrays.carry_out != nullptr ? arrays.carry_out : arrays.scalar;
    const LaneBatch batch = BatchOf(reduce_.axis, arrays);
    const bool has_values = HasManyValues(reduce_) && !arrays.is_part;
    return lane.Reduce({.dtype = reduce_.dtype,
                        .out_dtype = reduce_.out_dtype,
                        .op = reduce_.op,
                        .precision = reduce_.precision,
                        .algorithm = reduce_.algorithm,
                        .in = arrays.in,
                        .num_items = batch.num_items,
                        .num_arrays = batch.num_arrays,
                        .order = batch.order,
                        .offsets = arrays.offsets,
                        .first_item = arrays.first_item,
                        .init = StartOf(reduce_),
                        .state_in = reinterpret_cast<const ReduceState*>(arrays.carry_in),
                        .state_out = has_values ? nullptr : reinterpret_cast<ReduceState*>(state_out),
                        .values = has_values ? arrays.values : nullptr});
  }

  void Describe(const WorkTotals& totals, Result* result) const override {
    result->dtype = reduce_.output();
    if (HasManyValues(reduce_) && !totals.scalar) return;
    if (totals.num_items == 0) {
      result->value = reduce_.init.value_or(Identity(reduce_.op, reduce_.output()));
      return;
    }
    if (!totals.scalar) return;  // It failed.
    const ReduceState& state = *totals.scalar;
    result->value = ResultOf(reduce_.output(), reduce_.op, reduce_.precision, state);
    const bool is_extremum = reduce_.op == Op::kMin || reduce_.op == Op::kMax;
    if (is_extremum && state.position != 0 && state.position != ReduceState::kNothing) {
      result->index = state.position - 1;
    }
  }

 private:
  const ReduceSpec reduce_;
};

}  // namespace

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const ReduceSpec& spec) {
  return std::make_unique<ReduceWork>(device, spec);
}

}  // namespace prefixd
