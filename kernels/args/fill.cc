#include "kernels/args/fill.h"

#include <limits>

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const FillArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateServed("fill", "dtype", args.dtype));
  if (static_cast<int>(args.kind) >= kNumFillKinds) {
    return absl::InvalidArgumentError(
        StrCat("kind is ", static_cast<int>(args.kind), ": expected one of the ", kNumFillKinds, " kinds of a fill"));
  }
  if (args.num_items > std::numeric_limits<uint64_t>::max() - args.first_item) {
    return absl::InvalidArgumentError(StrCat("first_item is ", args.first_item, " and num_items ", args.num_items,
                                             ": expected indices below 2^64, use a smaller first_item"));
  }
  return ValidateArray({"out", args.out, args.dtype, args.num_items});
}

}  // namespace prefixd
