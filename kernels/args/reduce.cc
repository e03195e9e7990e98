#include "kernels/args/reduce.h"

#include "base/status.h"
#include "kernels/args/check.h"

namespace prefixd {

absl::Status Validate(const ReduceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kReduce, args.dtype, args.output(), args.op));
  if (args.state_out == nullptr) return absl::InvalidArgumentError("a reduce needs a state_out");
  PREFIXD_RETURN_IF_ERROR(ValidateBatch(args.num_arrays, args.num_items, args.state_in != nullptr));
  return ValidateAligned(args.in, args.dtype, "in");
}

ReduceArgs ArrayOf(ReduceArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.state_out += array;
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
