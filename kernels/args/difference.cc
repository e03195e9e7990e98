#include "kernels/args/difference.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const DifferenceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateDType(Primitive::kDifference, args.dtype));
  PREFIXD_RETURN_IF_ERROR(
      ValidateBatch(args.num_arrays, args.num_items, args.carry_in != nullptr || args.carry_out != nullptr));
  if (args.in == args.out && args.num_items > 0) {
    return absl::InvalidArgumentError(
        "in is out, but an element is read after its neighbour was written: use another "
        "buffer for out");
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.dtype, "out");
}

DifferenceArgs ArrayOf(DifferenceArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.out = Advance(batch.out, array * batch.num_items * SizeOf(batch.dtype));
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
