#include "kernels/args/compact.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

uint64_t MaskBytes(const CompactArgs& args) {
  if (args.selector == Selector::kByteMask) return args.num_items;
  if (args.selector == Selector::kBitMask) return args.num_items / 8 + (args.num_items % 8 != 0);
  return 0;
}

absl::Status Validate(const CompactArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateDType(Primitive::kCompact, args.dtype));
  if (args.count == nullptr) return absl::InvalidArgumentError("a compact needs a count");
  PREFIXD_RETURN_IF_ERROR(ValidateBatch(args.num_arrays, args.num_items, /*has_carries=*/false));
  if (args.indices != nullptr) {
    PREFIXD_RETURN_IF_ERROR(ValidateIndexType(args.index_dtype, args.first_item, args.num_items));
    PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.indices, args.index_dtype, "indices"));
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.values, args.dtype, "values");
}

CompactArgs ArrayOf(CompactArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.mask = Advance(batch.mask, array * MaskBytes(batch));
  batch.values = Advance(batch.values, array * batch.num_items * SizeOf(batch.dtype));
  batch.indices = Advance(batch.indices, array * batch.num_items * SizeOf(batch.index_dtype));
  batch.count += array;
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
