#include "kernels/args/transpose.h"

#include <limits>

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const TransposeArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateServed("transpose", "dtype", args.dtype));
  if (args.num_columns > 0 && args.num_rows > std::numeric_limits<uint64_t>::max() / args.num_columns) {
    return absl::InvalidArgumentError(StrCat("num_rows is ", args.num_rows, " and num_columns ", args.num_columns,
                                             ": expected a product below 2^64, use a smaller matrix"));
  }
  const uint64_t num_items = args.num_rows * args.num_columns;
  const ArrayArg in = {"in", args.in, args.dtype, num_items};
  const ArrayArg out = {"out", args.out, args.dtype, num_items};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(in));
  PREFIXD_RETURN_IF_ERROR(ValidateArray(out));
  return ValidateDisjoint(in, out);
}

uint64_t NumBytes(const TransposeArgs& args) { return 2 * args.num_rows * args.num_columns * SizeOf(args.dtype); }

}  // namespace prefixd
