#include "kernels/args/scan.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const ScanArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kScan, args.dtype, args.output(), args.op));
  PREFIXD_RETURN_IF_ERROR(
      ValidateBatch(args.num_arrays, args.num_items, args.carry_in != nullptr || args.carry_out != nullptr));
  if (args.in == args.out && args.num_items > 0 && SizeOf(args.dtype) != SizeOf(args.output())) {
    return absl::InvalidArgumentError(StrCat("in is out, but elements of ", Name(args.dtype), " and ",
                                             Name(args.output()), " differ in size: use another buffer for out"));
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.output(), "out");
}

ScanArgs ArrayOf(ScanArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.out = Advance(batch.out, array * batch.num_items * SizeOf(batch.output()));
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
