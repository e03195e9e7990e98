#include "kernels/args/scan.h"

#include "base/status.h"
#include "kernels/args/check.h"
#include "kernels/log_add_exp.h"
#include "kernels/spec.h"

namespace prefixd {
namespace {

absl::Status ValidateIndices(const ScanArgs& args, bool has_carries) {
  if (args.indices == nullptr) return absl::OkStatus();
  const bool is_extremum = args.op == Op::kMin || args.op == Op::kMax;
  if (!is_extremum || args.output() != args.dtype || args.kind != ScanKind::kInclusive) {
    return absl::InvalidArgumentError("indices are those of an inclusive scan by min or max to the elements' type");
  }
  if (args.num_items == 0 && has_carries) {
    return absl::InvalidArgumentError("nothing has no index, and so no carry with one: leave the carries out");
  }
  PREFIXD_RETURN_IF_ERROR(ValidateIndexType(args.index_dtype, args.first_item, args.num_items));
  const uint64_t num_items = args.offsets != nullptr ? args.num_items : args.num_items * args.num_arrays;
  const ArrayArg in = {"in", args.in, args.dtype, num_items};
  const ArrayArg out = {"out", args.out, args.dtype, num_items};
  const ArrayArg indices = {"indices", args.indices, args.index_dtype, num_items};
  PREFIXD_RETURN_IF_ERROR(ValidateArray(in));
  PREFIXD_RETURN_IF_ERROR(ValidateArray(out));
  PREFIXD_RETURN_IF_ERROR(ValidateArray(indices));
  PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(in, out));
  PREFIXD_RETURN_IF_ERROR(ValidateDisjoint(in, indices));
  return ValidateDisjoint(out, indices);
}

}  // namespace

absl::Status Validate(const ScanArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kScan, args.dtype, args.output(), args.op));
  PREFIXD_RETURN_IF_ERROR(CheckPrecision(args.precision, args.dtype, args.output(), args.op));
  const bool has_carries = args.carry_in != nullptr || args.carry_out != nullptr;
  PREFIXD_RETURN_IF_ERROR(ValidateArrays(args, has_carries));
  PREFIXD_RETURN_IF_ERROR(ValidateIndices(args, has_carries));
  if (args.coefficients != nullptr) {
    if (args.op != Op::kLinearRecurrence) {
      return absl::InvalidArgumentError("coefficients are for a linear recurrence: leave them out");
    }
    PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.coefficients, args.dtype, "coefficients"));
    if (args.coefficients == args.out && args.num_items > 0) {
      return absl::InvalidArgumentError("coefficients are out, and are read after it is written: use another buffer");
    }
  }
  if (args.in == args.out && args.num_items > 0 && SizeOf(args.dtype) != SizeOf(args.output())) {
    return absl::InvalidArgumentError(StrCat("in is out, but elements of ", Name(args.dtype), " and ",
                                             Name(args.output()), " differ in size: use another buffer for out"));
  }
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.in, args.dtype, "in"));
  return ValidateAligned(args.out, args.output(), "out");
}

uint64_t ItemBytes(const ScanArgs& args) {
  const uint64_t index_bytes = args.indices != nullptr ? SizeOf(args.index_dtype) : 0;
  return SizeOf(args.dtype) * (args.coefficients != nullptr ? 2 : 1) + SizeOf(args.output()) + index_bytes;
}

Value FirstResult(DType output, Op op, Value init) {
  if (op != Op::kLogAddExp) return init;
  return VisitDType(output, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsFloating<T>) {
      using Function = LogAddExpOf<Accumulator<T>>;
      return Value::Of(static_cast<T>(Function::Store(Function::Load(init.As<T>()))));
    }
    return init;
  });
}

ScanArgs ArrayOf(ScanArgs batch, uint64_t array) {
  batch.coefficients = Advance(batch.coefficients, array * batch.num_items * SizeOf(batch.dtype));
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  batch.out = Advance(batch.out, array * batch.num_items * SizeOf(batch.output()));
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
