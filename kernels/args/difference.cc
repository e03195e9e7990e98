#include "kernels/args/difference.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const DifferenceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateDType(Primitive::kDifference, args.dtype));
  const bool has_carries = args.carry_in != nullptr || args.carry_out != nullptr;
  if (args.offsets != nullptr && (has_carries || args.order != BatchOrder::kOneByOne)) {
    return absl::InvalidArgumentError("segments stand one by one, and have no carries");
  }
  // The segments have num_items together.
  const uint64_t array_items =
      args.offsets != nullptr ? args.num_items / std::max<uint64_t>(args.num_arrays, 1) : args.num_items;
  PREFIXD_RETURN_IF_ERROR(ValidateBatch(args.num_arrays, array_items, has_carries));
  if (args.in == args.out && args.num_items > 0) {
    return absl::InvalidArgumentError(
        "in is out, but an element is read after its neighbour was written: use another "
        "buffer for out");
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.dtype, "out");
}

uint64_t NumBytes(const DifferenceArgs& args) {
  if (args.offsets != nullptr)
    return 2 * args.num_items * SizeOf(args.dtype) + (args.num_arrays + 1) * sizeof(uint64_t);
  return 2 * args.num_arrays * args.num_items * SizeOf(args.dtype);
}

DifferenceArgs ArrayOf(DifferenceArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.out = Advance(batch.out, array * batch.num_items * SizeOf(batch.dtype));
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
