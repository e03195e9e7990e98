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
    if (args.index_dtype != DType::kU64 && args.index_dtype != DType::kU32) {
      return absl::InvalidArgumentError(StrCat("indices are u64 or u32, not ", Name(args.index_dtype)));
    }
    constexpr uint64_t kU32Items = uint64_t{1} << 32;
    if (args.index_dtype == DType::kU32 &&
        (args.first_item > kU32Items || args.num_items > kU32Items - args.first_item)) {
      return Error(absl::StatusCode::kOutOfRange, "INDEX_OVERFLOW", "spec.index_dtype",
                   "the array has more than 2^32 elements, whose indices do not fit u32: ask for u64");
    }
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
