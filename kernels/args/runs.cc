#include "kernels/args/runs.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const RunsArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateServed("runs", "dtype", args.dtype));
  const ArrayArg keys = {"keys", args.keys, args.dtype, args.num_items};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(keys));  // One offset more, and the scratch, are no overflow then.
  const ArrayArg offsets = {"offsets", args.offsets, DType::kU64, args.num_items + 1};
  const ArrayArg scratch = {"scratch", args.scratch, DType::kU64, RunsScratchBytes(args.num_items) / sizeof(uint64_t)};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(offsets));
  PREFIXD_RETURN_IF_ERROR(ValidateArray(scratch));
  PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(keys, offsets));
  PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(keys, scratch));
  PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(offsets, scratch));
  return args.num_offsets != nullptr ? absl::OkStatus() : absl::InvalidArgumentError("num_offsets is null");
}

uint64_t NumBytes(const RunsArgs& args) { return args.num_items * SizeOf(args.dtype); }

}  // namespace prefixd
