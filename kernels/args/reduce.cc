#include "kernels/args/reduce.h"

#include <cmath>
#include <limits>

#include "base/status.h"
#include "kernels/args/check.h"
#include "kernels/spec.h"
#include "kernels/wide_sum.h"

namespace prefixd {

namespace {

// The opposite of ToAccumulator, rounded.
Value FromAccumulator(Value value, DType output) {
  return VisitDType(output, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Value::Of(static_cast<T>(value.As<Accumulator<T>>()));
  });
}

}  // namespace

absl::Status Validate(const ReduceArgs& args) {
  PREFIXD_RETURN_IF_ERROR(ValidateOp(Primitive::kReduce, args.dtype, args.output(), args.op));
  PREFIXD_RETURN_IF_ERROR(CheckPrecision(args.precision, args.dtype, args.output(), args.op));
  if ((args.state_out == nullptr) == (args.values == nullptr)) {
    return absl::InvalidArgumentError("a reduce needs a state_out or values, and not both");
  }
  if (args.values == nullptr && args.num_arrays > 1 && args.order == BatchOrder::kInterleaved) {
    return absl::InvalidArgumentError("arrays that are interleaved have no states: give values");
  }
  if (args.offsets != nullptr && args.values == nullptr) {
    return absl::InvalidArgumentError("segments have values, and no states: give values");
  }
  if (args.values != nullptr && args.state_in != nullptr) {
    return absl::InvalidArgumentError("a reduce into values has no state_in");
  }
  PREFIXD_RETURN_IF_ERROR(ValidateArrays(args, args.state_in != nullptr));
  PREFIXD_RETURN_IF_ERROR(ValidateAligned(args.values, args.output(), "values"));
  return ValidateAligned(args.in, args.dtype, "in");
}

ReduceState StartOf(const ReduceArgs& args) {
  if (args.op != Op::kLogAddExp) return args.init;
  return VisitAccumulator(args.output(), [&](auto tag) -> ReduceState {
    using T = typename decltype(tag)::type;
    if constexpr (kIsFloating<T>) {
      return StateOf(LogAddExpOf<T>::Load(args.init.value.As<T>()), args.init.position);
    }
    return args.init;
  });
}

Value ResultOf(DType output, Op op, Precision precision, const ReduceState& state) {
  if (op == Op::kLogAddExp) {
    return VisitAccumulator(output, [&](auto tag) -> Value {
      using T = typename decltype(tag)::type;
      if constexpr (kIsFloating<T>) {
        return FromAccumulator(Value::Of(LogAddExpOf<T>::Store(ScaledOf<T>(state))), output);
      }
      return state.value;
    });
  }
  if (precision == Precision::kNative) return FromAccumulator(state.value, output);
  const double value = Rounded(Compensated<double>{state.value.As<double>(), state.second});
  if (output == DType::kF64) return Value::Of(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
  return Value::Of(std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value));
}

Value EmptyValue(const ReduceArgs& args) {
  if (args.init.position == ReduceState::kNothing) return Identity(args.op, args.output());
  const Value value = args.IsWide() ? ResultOf(args.output(), args.op, args.precision, args.init)
                                    : FromAccumulator(args.init.value, args.output());
  return VisitDType(args.output(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsFloating<T>) {
      if (std::isnan(static_cast<Accumulator<T>>(value.As<T>()))) return Value::Of(std::numeric_limits<T>::quiet_NaN());
    }
    return value;
  });
}

ReduceArgs ArrayOf(ReduceArgs batch, uint64_t array) {
  batch.in = Advance(batch.in, array * batch.num_items * SizeOf(batch.dtype));
  if (batch.state_out != nullptr) batch.state_out += array;
  batch.values = Advance(batch.values, array * SizeOf(batch.output()));
  batch.num_arrays = 1;
  return batch;
}

}  // namespace prefixd
