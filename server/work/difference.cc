#include "server/work/difference.h"

#include "base/status.h"

namespace prefixd {
namespace {

bool IsWhole(const DifferenceSpec& spec) { return HasColumns(spec.axis) || spec.segmented; }

class DifferenceWork final : public Work {
 public:
  DifferenceWork(const Device& device, const DifferenceSpec& spec)
      : Work(device, spec,
             {.value_bytes = SizeOf(spec.dtype),
              .carry_bytes = IsWhole(spec) ? 0 : SizeOf(spec.dtype),
              .is_whole = IsWhole(spec),
              .row_items = RowItems(spec.axis),
              .has_offsets = spec.segmented,
              .keys = spec.key_dtype}),
        difference_(spec) {}

  absl::Status CheckStream() const override {
    if (HasColumns(difference_.axis)) return ColumnsOnStream(difference_.dtype, difference_.dtype);
    if (difference_.segmented) return SegmentsOnStream(difference_.dtype, difference_.dtype);
    if (!difference_.reverse) return absl::OkStatus();
    return Error(absl::StatusCode::kFailedPrecondition, "REVERSE_ON_STREAM", "spec.reverse",
                 StrCat("an element's difference to the next one can't be told before that comes, so a stream would "
                        "have to wait for it: use the unary call, for at most ",
                        kMaxReplyPayloadBytes / SizeOf(difference_.dtype), " elements of ", Name(difference_.dtype)));
  }

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    const LaneBatch batch = BatchOf(difference_.axis, arrays);
    return lane.Difference({.dtype = difference_.dtype,
                            .reverse = difference_.reverse,
                            .algorithm = difference_.algorithm,
                            .in = arrays.in,
                            .out = arrays.values,
                            .num_items = batch.num_items,
                            .num_arrays = batch.num_arrays,
                            .order = batch.order,
                            .offsets = arrays.offsets,
                            .init = difference_.init.value_or(Value{}),
                            .carry_in = arrays.carry_in,
                            .carry_out = arrays.carry_out});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const DifferenceSpec difference_;
};

}  // namespace

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const DifferenceSpec& spec) {
  return std::make_unique<DifferenceWork>(device, spec);
}

}  // namespace prefixd
