#include "kernels/args/check.h"

#include <limits>

#include "base/status.h"

namespace prefixd {

absl::Status ValidateOp(Primitive primitive, DType dtype, DType out_dtype, Op op) {
  if (IsSupported(primitive, dtype, out_dtype, op)) return absl::OkStatus();
  if (IsSupported(dtype) && !IsOutput(dtype, out_dtype)) {
    return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.out_dtype",
                 StrCat(Name(primitive), " of ", Name(dtype), " does not serve the output type ", Name(out_dtype),
                        ": use one of ", OutputNames(dtype)));
  }
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.op",
               StrCat(Name(primitive), " does not serve ", Name(op), " of ", Name(dtype)));
}

absl::Status ValidateDType(Primitive primitive, DType dtype) {
  if (IsSupported(dtype)) return absl::OkStatus();
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.dtype",
               StrCat(Name(primitive), " does not serve ", Name(dtype)));
}

absl::Status ValidateAligned(const void* pointer, DType dtype, std::string_view what) {
  if (reinterpret_cast<uintptr_t>(pointer) % SizeOf(dtype) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, " is not aligned to its ", SizeOf(dtype), "-byte elements"));
}

absl::Status ValidateBatch(uint64_t num_arrays, uint64_t num_items, bool has_carries) {
  // As many as a grid has blocks.
  constexpr uint64_t kMaxArrays = std::numeric_limits<int32_t>::max();
  if (num_arrays < 1 || num_arrays > kMaxArrays) {
    return absl::InvalidArgumentError(StrCat("num_arrays is ", num_arrays, ": expected 1 to ", kMaxArrays));
  }
  if (num_items > std::numeric_limits<uint64_t>::max() / sizeof(uint64_t) / num_arrays) {
    return absl::InvalidArgumentError(StrCat(num_arrays, " arrays of ", num_items, " items are more than 2^64 bytes"));
  }
  if (num_arrays > 1 && has_carries) return absl::InvalidArgumentError("the arrays of a batch have no carries");
  return absl::OkStatus();
}

}  // namespace prefixd
