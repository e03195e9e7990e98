#include "kernels/args/map.h"

#include <utility>

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {
namespace {

absl::Status ValidateOperator(const MapArgs& args) {
  if (static_cast<int>(args.op) >= kNumMapOps) {
    return absl::InvalidArgumentError(
        StrCat("op is ", static_cast<int>(args.op), ": expected one of the ", kNumMapOps, " operators of a map"));
  }
  PREFIXD_RETURN_IF_ERROR(ValidateServed("map", "dtype", args.dtype));
  PREFIXD_RETURN_IF_ERROR(ValidateServed("map", "cast_dtype", args.output()));
  if (args.op != MapOp::kCompare && args.op != MapOp::kCompareArrays) return absl::OkStatus();
  if (static_cast<int>(args.comparison) >= kNumComparisons) {
    return absl::InvalidArgumentError(StrCat("comparison is ", static_cast<int>(args.comparison),
                                             ": expected one of the ", kNumComparisons, " comparisons"));
  }
  if (args.op == MapOp::kCompareArrays && !IsOfTwo(args.comparison)) {
    return absl::InvalidArgumentError(StrCat("comparison is ", Name(args.comparison),
                                             ", which looks at one array: use ", Name(MapOp::kCompare), " in place of ",
                                             Name(args.op)));
  }
  return absl::OkStatus();
}

// out is the input itself, or has nothing in common with it.
absl::Status ValidateOut(const ArrayArg& in, const ArrayArg& out) {
  if (in.data != out.data) return ValidateDisjoint(in, out);
  if (SizeOf(in.dtype) == SizeOf(out.dtype) || in.num_items == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(in.name, " is out, but elements of ", Name(in.dtype), " and ",
                                           Name(out.dtype), " differ in size: use another buffer for out"));
}

}  // namespace

absl::Status Validate(const MapArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOperator(args));
  const ArrayArg in = {"in", args.in, args.dtype, args.num_items};
  const ArrayArg out = {"out", args.out, args.output(), args.num_items};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(in));
  PREFIXD_RETURN_IF_ERROR(ValidateArray(out));
  PREFIXD_RETURN_IF_ERROR(ValidateOut(in, out));
  if (NumInputs(args.op) == 1) return absl::OkStatus();
  const ArrayArg other = {"other", args.other, args.dtype, args.num_items};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(other));
  return ValidateOut(other, out);
}

uint64_t NumBytes(const MapArgs& args) {
  return args.num_items * (NumInputs(args.op) * SizeOf(args.dtype) + SizeOf(args.output()));
}

MapArgs WithoutGreater(MapArgs args) {
  const bool is_greater = args.comparison == Comparison::kGreater;
  if (args.op != MapOp::kCompareArrays || (!is_greater && args.comparison != Comparison::kGreaterEqual)) return args;
  args.comparison = is_greater ? Comparison::kLess : Comparison::kLessEqual;
  std::swap(args.in, args.other);
  return args;
}

}  // namespace prefixd
