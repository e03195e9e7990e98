#include "kernels/args/gather.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {
namespace {

// in, out: the arrays as the call has them.
absl::Status ValidateArrays(std::string_view call, DType dtype, DType index_dtype, ArrayArg in, ArrayArg indices,
                            ArrayArg out, const uint64_t* num_bad) {
  PREFIXD_RETURN_IF_ERROR(ValidateServed(call, "dtype", dtype));
  if (index_dtype != DType::kU64 && index_dtype != DType::kU32) {
    return absl::InvalidArgumentError(
        StrCat("index_dtype is ", Name(index_dtype), ": expected u64 or u32, cast the indices"));
  }
  const ArrayArg bad = {"num_bad", num_bad, DType::kU64, 1};
  for (const ArrayArg& array : {in, indices, out, bad}) PREFIXD_RETURN_IF_ERROR(ValidateArray(array));
  for (const ArrayArg& array : {in, indices, bad}) PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(array, out));
  for (const ArrayArg& array : {in, indices}) PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(array, bad));
  return absl::OkStatus();
}

uint64_t BytesOf(uint64_t num_items, DType dtype, DType index_dtype) {
  return num_items * (2 * SizeOf(dtype) + SizeOf(index_dtype)) + sizeof(uint64_t);
}

}  // namespace

absl::Status Validate(const GatherArgs& args) {
  return ValidateArrays("gather", args.dtype, args.index_dtype, {"in", args.in, args.dtype, args.in_items},
                        {"indices", args.indices, args.index_dtype, args.num_items},
                        {"out", args.out, args.dtype, args.num_items}, args.num_bad);
}

absl::Status Validate(const ScatterArgs& args) {
  return ValidateArrays("scatter", args.dtype, args.index_dtype, {"in", args.in, args.dtype, args.num_items},
                        {"indices", args.indices, args.index_dtype, args.num_items},
                        {"out", args.out, args.dtype, args.out_items}, args.num_bad);
}

uint64_t NumBytes(const GatherArgs& args) { return BytesOf(args.num_items, args.dtype, args.index_dtype); }
uint64_t NumBytes(const ScatterArgs& args) { return BytesOf(args.num_items, args.dtype, args.index_dtype); }

}  // namespace prefixd
