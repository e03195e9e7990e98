#include "kernels/args/count.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const CountArgs& args) {
  if (args.index_dtype != DType::kU64 && args.index_dtype != DType::kU32) {
    return absl::InvalidArgumentError(
        StrCat("index_dtype is ", Name(args.index_dtype), ": expected u64 or u32, cast the indices"));
  }
  if (args.num_items == 0) return absl::OkStatus();
  const ArrayArg indices = {"indices", args.indices, args.index_dtype, args.num_indices};
  const ArrayArg counts = {"counts", args.counts, DType::kU64, args.num_items};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(counts));  // One offset more is no overflow then.
  const ArrayArg offsets = {"offsets", args.offsets, DType::kU64, args.num_items + 1};
  for (const ArrayArg& array : {indices, offsets}) {
    PREFIXD_RETURN_IF_ERROR(ValidateArray(array));
    PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(array, counts));
  }
  return absl::OkStatus();
}

uint64_t NumBytes(const CountArgs& args) {
  return args.num_items == 0 ? 0 : (2 * args.num_items + 1) * sizeof(uint64_t);
}

}  // namespace prefixd
