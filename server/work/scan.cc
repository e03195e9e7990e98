#include "server/work/scan.h"

#include "base/status.h"

namespace prefixd {
namespace {

class ScanWork final : public Work {
 public:
  ScanWork(const Device& device, const ScanSpec& spec)
      : Work(device, spec,
             {.value_bytes = SizeOf(spec.output()),
              .carry_bytes = spec.axis ? 0 : SizeOf(spec.output()),
              .depends_on_cuts = !spec.axis && DependsOnCuts(spec.algorithm, spec.op, spec.output()),
              .in_place = true,
              .is_whole = spec.axis.has_value()}),
        scan_(spec) {}

  absl::Status CheckStream() const override {
    if (scan_.axis) return AxisOnStream(scan_.output());
    if (!scan_.reverse) return absl::OkStatus();
    return Error(absl::StatusCode::kFailedPrecondition, "REVERSE_ON_STREAM", "spec.reverse",
                 StrCat("a reverse scan begins with the last element, and a stream's end is not known: use the unary "
                        "call, for at most ",
                        kMaxReplyPayloadBytes / SizeOf(scan_.output()), " elements of ", Name(scan_.output())));
  }

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    const LaneBatch batch = BatchOf(scan_.axis, arrays);
    return lane.Scan({.dtype = scan_.dtype,
                      .out_dtype = scan_.out_dtype,
                      .op = scan_.op,
                      .kind = scan_.kind,
                      .reverse = scan_.reverse,
                      .algorithm = scan_.algorithm,
                      .in = arrays.in,
                      .out = arrays.values,
                      .num_items = batch.num_items,
                      .num_arrays = batch.num_arrays,
                      .order = batch.order,
                      .init = scan_.init.value_or(ScanStart(scan_.op, scan_.output(), scan_.kind)),
                      .carry_in = arrays.carry_in,
                      .carry_out = arrays.carry_out});
  }

  void Describe(const WorkTotals& /*totals*/, Result* /*result*/) const override {}

 private:
  const ScanSpec scan_;
};

}  // namespace

std::unique_ptr<const Work> MakeWorkOf(const Device& device, const ScanSpec& spec) {
  return std::make_unique<ScanWork>(device, spec);
}

}  // namespace prefixd
