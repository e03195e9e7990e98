#include "server/work/scan.h"

#include "base/status.h"
#include "kernels/args/extrema.h"

namespace prefixd {
namespace {

bool IsWhole(const ScanSpec& spec) { return HasColumns(spec.axis) || spec.segmented; }

// With the initial value an exclusive scan has its results, and the carry behind them is one more. Where a carry is no
// result, because it has more bits, an inclusive scan has all results but the initial value; and where that is there
// already.
uint64_t CarryBytesOf(const ScanSpec& spec) {
  return spec.return_indices ? sizeof(ExtremumCarry) : CarryBytes(spec.output(), spec.op, spec.precision);
}

bool CarryIsResult(const ScanSpec& spec) { return CarryBytesOf(spec) == SizeOf(spec.output()); }
ScanKind KindOf(const ScanSpec& spec, bool is_part) {
  if (!spec.include_initial) return spec.kind;
  return CarryIsResult(spec) && !is_part ? ScanKind::kExclusive : ScanKind::kInclusive;
}

class ScanWork final : public Work {
 public:
  ScanWork(const Device& device, const ScanSpec& spec)
      : Work(device, spec,
             {.value_bytes = SizeOf(spec.output()),
              .index_bytes = spec.return_indices ? SizeOf(spec.index_dtype) : 0,
              .carry_bytes = IsWhole(spec) ? 0 : CarryBytesOf(spec),
              .depends_on_cuts = !IsWhole(spec) && DependsOnCuts(spec.algorithm, spec.op, spec.output()),
              .in_place = !spec.include_initial && !spec.return_indices,
              .is_whole = IsWhole(spec),
              .row_items = RowItems(spec.axis),
              .has_offsets = spec.segmented,
              .keys = spec.key_dtype,
              .has_coefficients = spec.has_coefficients,
              .has_initial = spec.include_initial}),
        scan_(spec) {}

  absl::Status CheckStream() const override {
    if (HasColumns(scan_.axis)) return ColumnsOnStream(scan_.dtype, scan_.output());
    if (scan_.segmented) return SegmentsOnStream(scan_.dtype, scan_.output());
    if (!scan_.reverse) return absl::OkStatus();
    return Error(absl::StatusCode::kFailedPrecondition, "REVERSE_ON_STREAM", "spec.reverse",
                 StrCat("a reverse scan begins with the last element, and a stream's end is not known: use the unary "
                        "call, for at most ",
                        kMaxReplyPayloadBytes / SizeOf(scan_.output()), " elements of ", Name(scan_.output())));
  }

  absl::Status Enqueue(Lane& lane, const WorkArrays& arrays) const override {
    const LaneBatch batch = BatchOf(scan_.axis, arrays);
    const Value init = scan_.init.value_or(
        ScanStart(scan_.op, scan_.output(), scan_.include_initial ? ScanKind::kExclusive : scan_.kind));
    std::byte* out = arrays.values;
    std::byte* carry_out = arrays.carry_out;
    if (scan_.include_initial && !arrays.is_part) {
      std::byte* const front = out;
      std::byte* const behind = out + arrays.num_items * shape().value_bytes;
      const bool is_result = CarryIsResult(scan_);
      std::byte* const apart = scan_.reverse == is_result ? front : behind;  // The result that the scan does not write.
      if (apart == front) out += shape().value_bytes;
      if (is_result) {
        carry_out = apart;
      } else {
        PREFIXD_RETURN_IF_ERROR(lane.Fill({.dtype = scan_.output(),
                                           .kind = FillKind::kConstant,
                                           .value = FirstResult(scan_.output(), scan_.op, init),
                                           .out = apart,
                                           .num_items = 1}));
      }
    }
    return lane.Scan({.dtype = scan_.dtype,
                      .out_dtype = scan_.out_dtype,
                      .op = scan_.op,
                      .precision = scan_.precision,
                      .kind = KindOf(scan_, arrays.is_part),
                      .reverse = scan_.reverse,
                      .algorithm = scan_.algorithm,
                      .in = arrays.in,
                      .out = out,
                      .num_items = batch.num_items,
                      .num_arrays = batch.num_arrays,
                      .order = batch.order,
                      .offsets = arrays.offsets,
                      .coefficients = arrays.coefficients,
                      .coefficient = scan_.coefficient.value_or(Value()),
                      .init = init,
                      .carry_in = arrays.carry_in,
                      .carry_out = carry_out,
                      .indices = scan_.return_indices ? arrays.indices : nullptr,
                      .index_dtype = scan_.index_dtype,
                      .last_index = scan_.last_index,
                      .first_item = arrays.first_item});
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
