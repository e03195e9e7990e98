#include "kernels/spec.h"

#include <bit>
#include <limits>

#include "base/status.h"

namespace prefixd {
namespace {

absl::Status ShapeError(std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "spec.row_items", why);
}

absl::Status CheckInitial(const ScanSpec& spec) {
  if (!spec.include_initial || (!spec.axis && !spec.segmented)) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.include_initial",
               StrCat("the initial value stands in front of one array, and there ",
                      spec.axis ? "is an axis" : "are segments", ": leave one of them out"));
}

absl::Status CheckIndices(const ScanSpec& spec) {
  const auto conflict = [](std::string_view field, std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field, why);
  };
  if (!spec.return_indices) {
    if (!spec.last_index) return absl::OkStatus();
    return conflict("spec.last_index",
                    "no indices are returned, of which it could be the last: set return_indices too");
  }
  const bool is_extremum = spec.op == Op::kMin || spec.op == Op::kMax;
  if (!is_extremum || spec.output() != spec.dtype) {
    return Error(
        absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.return_indices",
        StrCat("a scan by ", Name(spec.op),
               spec.output() == spec.dtype ? "" : StrCat(" of ", Name(spec.dtype), " to ", Name(spec.output())),
               " has no indices: only min and max to the elements' own type have"));
  }
  if (spec.kind == ScanKind::kExclusive || spec.include_initial) {
    return conflict(spec.include_initial ? "spec.include_initial" : "spec.kind",
                    "in front of the first element there is no index: leave return_indices out, or scan inclusively");
  }
  if (!spec.init) return absl::OkStatus();
  return conflict("spec.init", "the initial value has no index: leave it or return_indices out");
}

absl::Status CheckCoefficients(const ScanSpec& spec) {
  const auto conflict = [](std::string_view field, std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field, why);
  };
  if (spec.op != Op::kLinearRecurrence) {
    if (!spec.has_coefficients && !spec.coefficient) return absl::OkStatus();
    return conflict(
        spec.coefficient ? "spec.coefficient" : "coefficients",
        StrCat("a scan by ", Name(spec.op), " has no coefficients: leave them out, or scan by linear_recurrence"));
  }
  if (!spec.has_coefficients && !spec.coefficient) {
    return conflict("coefficients",
                    "a linear recurrence needs coefficients: send one for each element, or spec.coefficient for all");
  }
  if (spec.has_coefficients && spec.coefficient) {
    return conflict("spec.coefficient", "there are coefficients and one coefficient for all: leave one of them out");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPrecision(Precision precision, DType dtype, DType out_dtype, Op op) {
  if (precision == Precision::kNative) return absl::OkStatus();
  if (IsWideSum(dtype, out_dtype, op)) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.precision",
               StrCat("precision ", Name(precision), " is for sums of f32 and f64 to the same type, and ", Name(op),
                      " of ", Name(dtype), out_dtype == dtype ? "" : StrCat(" to ", Name(out_dtype)),
                      " was asked for: leave the precision out"));
}

absl::Status CheckComparison(Comparison comparison, bool has_value, bool has_end, std::string_view field) {
  const auto check = [&](bool takes, bool has, std::string_view what, std::string_view article) {
    if (takes == has) return absl::OkStatus();
    return InvalidField("FIELD_CONFLICT", StrCat(field, ".", what),
                        StrCat("the comparison ", Name(comparison), " takes ", takes ? article : "no", " ", what));
  };
  PREFIXD_RETURN_IF_ERROR(check(HasValue(comparison), has_value, "value", "a"));
  return check(HasEnd(comparison), has_end, "end", "an");
}

absl::Status CheckItemsPerThread(uint64_t items_per_thread, std::string_view field) {
  if (items_per_thread <= kMaxItemsPerThread && std::popcount(items_per_thread) <= 1) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "ALGORITHM_CHOICE", field,
               StrCat("items_per_thread is ", items_per_thread, ": expected a power of two up to ", kMaxItemsPerThread,
                      ", or 0 for the device's choice"));
}

absl::Status CheckRows(const Axis& axis, uint64_t num_items) {
  if (axis.row_items == 0) return ShapeError("a row has no elements: say how many it has, at least 1");
  if (num_items % axis.row_items == 0) return absl::OkStatus();
  return ShapeError(StrCat(num_items, " elements are no whole number of rows of ", axis.row_items,
                           ": send whole rows, or say how many elements one has"));
}

absl::Status CheckAxis(const Axis& axis, uint64_t num_items) {
  constexpr uint64_t kMaxArrays = std::numeric_limits<int32_t>::max();
  PREFIXD_RETURN_IF_ERROR(CheckRows(axis, num_items));
  if (axis.NumArrays(num_items) <= kMaxArrays) return absl::OkStatus();
  return ShapeError(StrCat(axis.NumArrays(num_items), axis.along == Axis::Along::kRow ? " rows" : " columns",
                           " are more than ", kMaxArrays, ": work on parts of the matrix"));
}

absl::Status CheckScan(const ScanSpec& spec) {
  PREFIXD_RETURN_IF_ERROR(CheckCoefficients(spec));
  PREFIXD_RETURN_IF_ERROR(CheckPrecision(spec.precision, spec.dtype, spec.output(), spec.op));
  PREFIXD_RETURN_IF_ERROR(CheckInitial(spec));
  return CheckIndices(spec);
}

absl::Status CheckReduce(const ReduceSpec& spec) {
  return CheckPrecision(spec.precision, spec.dtype, spec.output(), spec.op);
}

}  // namespace prefixd
