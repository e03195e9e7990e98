#include "server/work/reduce.h"

namespace prefixd {
namespace {

class ReduceWork final : public Work {
 public:
  ReduceWork(const Device& device, const ReduceSpec& spec)
      : Work(device, spec,
             {.scalar_bytes = sizeof(ReduceState),
              .carry_bytes = sizeof(ReduceState),
              .depends_on_cuts = DependsOnCuts(spec.algorithm, spec.op, spec.output())}),
        reduce_(spec) {}

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    std::byte* const state_out = arrays.carry_out != nullptr ? arrays.carry_out : arrays.scalar;
    return lane.Reduce(
        {.dtype = reduce_.dtype,
         .out_dtype = reduce_.out_dtype,
         .op = reduce_.op,
         .algorithm = reduce_.algorithm,
         .in = arrays.in,
         .num_items = arrays.num_items,
         .num_arrays = arrays.num_arrays,
         .first_item = arrays.first_item,
         .init = reduce_.init ? ReduceState{*reduce_.init, 0} : ReduceState{Neutral(reduce_.op, reduce_.output())},
         .state_in = reinterpret_cast<const ReduceState*>(arrays.carry_in),
         .state_out = reinterpret_cast<ReduceState*>(state_out)});
  }

  void Describe(const WorkTotals& totals, Result* result) const override {
    result->dtype = reduce_.output();
    if (totals.num_items == 0) {
      result->value = reduce_.init.value_or(Identity(reduce_.op, reduce_.output()));
      return;
    }
    if (!totals.scalar) return;  // It failed.
    const ReduceState& state = *totals.scalar;
    result->value = state.value;
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
