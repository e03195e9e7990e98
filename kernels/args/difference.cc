#include "kernels/args/difference.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const DifferenceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateDType(Primitive::kDifference, args.dtype));
  const bool has_carries = args.carry_in != nullptr || args.carry_out != nullptr;
  PREFIXD_RETURN_IF_ERROR(ValidateArrays(args, has_carries));
  if (args.in == args.out && args.num_items > 0) {
    return absl::InvalidArgumentError(
        "in is out, but an element is read after its neighbour was written: use another "
        "buffer for out");
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.dtype, "out");
}

uint64_t NumBytes(const DifferenceArgs& args) {
  const uint64_t array_bytes = 2 * args.num_items * SizeOf(args.dtype);
  return args.offsets == nullptr ? args.num_arrays * array_bytes
                                 : array_bytes + (args.num_arrays + 1) * sizeof(*args.offsets);
}

DifferenceArgs ArrayOf(DifferenceArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.out = Advance(batch.out, array * batch.num_items * SizeOf(batch.dtype));
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
