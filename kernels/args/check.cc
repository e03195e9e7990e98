#include "kernels/args/check.h"

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace prefixd {

absl::Status ValidateOp(Primitive primitive, DType dtype, DType out_dtype, Op op) {
  if (IsSupported(primitive, dtype, out_dtype, op) || IsRecurrence(primitive, dtype, out_dtype, op)) {
    return absl::OkStatus();
  }
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

absl::Status ValidateIndexType(DType index_dtype, uint64_t first_item, uint64_t num_items) {
  if (index_dtype == DType::kU64) return absl::OkStatus();
  if (index_dtype != DType::kU32) {
    return absl::InvalidArgumentError(StrCat("indices are u64 or u32, not ", Name(index_dtype)));
  }
  constexpr uint64_t kU32Items = uint64_t{1} << 32;
  if (first_item <= kU32Items && num_items <= kU32Items - first_item) return absl::OkStatus();
  return Error(absl::StatusCode::kOutOfRange, "INDEX_OVERFLOW", "spec.index_dtype",
               "the array has more than 2^32 elements, whose indices do not fit u32: ask for u64");
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

absl::Status ValidateServed(std::string_view call, std::string_view name, DType dtype) {
  if (IsSupported(dtype)) return absl::OkStatus();
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", name,
               StrCat(call, " does not serve ", Name(dtype), " as ", name, ": use another element type"));
}

absl::Status ValidateArray(const ArrayArg& array) {
  const std::string items = StrCat(array.num_items, " items of ", Name(array.dtype));
  if (array.data == nullptr && array.num_items > 0) {
    return absl::InvalidArgumentError(StrCat(array.name, " is null: expected an array of ", items));
  }
  // Addresses of one array are less than 2^63 apart, as pointers' differences are.
  const uint64_t bytes_behind = std::numeric_limits<uintptr_t>::max() - reinterpret_cast<uintptr_t>(array.data);
  const uint64_t max_bytes = std::min(bytes_behind, static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (array.num_items > max_bytes / SizeOf(array.dtype)) {
    return absl::InvalidArgumentError(StrCat(array.name, " has ", items, ", which no memory holds: ask for fewer"));
  }
  return ValidateAligned(array.data, array.dtype, array.name);
}

absl::Status ValidateDisjoint(const ArrayArg& a, const ArrayArg& b) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a.data);
  const auto b_begin = reinterpret_cast<uintptr_t>(b.data);
  const uintptr_t a_end = a_begin + a.num_items * SizeOf(a.dtype);
  const uintptr_t b_end = b_begin + b.num_items * SizeOf(b.dtype);
  const bool is_empty = a.num_items == 0 || b.num_items == 0;
  if (is_empty || a_end <= b_begin || b_end <= a_begin) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(a.name, " and ", b.name, " overlap: expected arrays without a common byte, use another buffer"));
}

}  // namespace prefixd
