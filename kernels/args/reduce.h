// The arguments of Lane::Reduce.
#ifndef PREFIXD_KERNELS_ARGS_REDUCE_H_
#define PREFIXD_KERNELS_ARGS_REDUCE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "kernels/algorithm.h"
#include "kernels/args/batch.h"
#include "kernels/log_add_exp.h"
#include "kernels/types.h"

namespace prefixd {

// What a reduce has seen so far, kept on the device between chunks.
struct ReduceState {
  Value value;
  // MIN and MAX: where the value comes from. 0: from init; i + 1: from element i of the whole array, the first with
  // that value; kNothing: from nowhere yet. A lower position wins a tie. Other operators leave it alone.
  uint64_t position = kNothing;

  static constexpr uint64_t kNothing = ~uint64_t{0};

  // Where an item is a pair, whose sum is the value: Compensated<double>::error of a wide sum of f64, and
  // Scaled::exponent of log_add_exp. Else 0.
  double second = 0;
};

// value = start op in[0] op ... op in[n-1]; an empty input leaves the state as it was, or into values has EmptyValue. A
// NaN comes out canonical.
struct ReduceArgs {
  DType dtype = DType::kI32;       // The type of in.
  std::optional<DType> out_dtype;  // The type of values; elements combine in AccumulatorOf it. Absent: dtype.
  Op op = Op::kSum;
  Precision precision = Precision::kNative;  // Wide: elements combine in more.
  Algorithm algorithm;
  const void* in = nullptr;  // Device.
  uint64_t num_items = 0;
  uint64_t num_arrays = 1;                   // See Lane. Several arrays have no state_in.
  BatchOrder order = BatchOrder::kOneByOne;  // Interleaved: with values.
  // Device: of segments, arrays one by one whose lengths differ. Array a has the items offsets[a] to offsets[a + 1] of
  // num_items in all; some may have none. num_arrays + 1 of them, from 0 to num_items, none below the one before: who
  // calls has seen to it. With values.
  const uint64_t* offsets = nullptr;
  uint64_t first_item = 0;  // Index of in[0] in the whole array.
  // In front of in[0]: {init, 0}, or {Neutral, kNothing} without an init; StartOf makes a state of it. Used if state_in
  // is null.
  ReduceState init;
  const ReduceState* state_in = nullptr;  // Device: the state_out of the chunk before.
  ReduceState* state_out = nullptr;       // Device, may equal state_in. A state for each array.
  // Device: in the place of state_out, one item of the output type for each array, without positions. Then there is no
  // state_in.
  void* values = nullptr;

  bool IsWide() const { return precision == Precision::kWide; }
  // The type of the states' values, and of init's.
  DType StateDType() const { return IsWide() ? DType::kF64 : AccumulatorOf(output()); }
  DType output() const { return out_dtype.value_or(dtype); }
};

// The checks that Lane::Reduce makes before it enqueues. Errors: those of Lane::Reduce, except the algorithm's.
absl::Status Validate(const ReduceArgs& args);

// A state of log_add_exp as what it is of, and back.
template <class T>
Scaled<T> ScaledOf(const ReduceState& state) {
  return {state.value.As<T>(), static_cast<T>(state.second)};
}
template <class T>
ReduceState StateOf(Scaled<T> item, uint64_t position) {
  return {Value::Of(item.sum), position, item.exponent};
}

// args.init as a state.
ReduceState StartOf(const ReduceArgs& args);

// What a state comes to, in the output type.
Value ResultOf(DType output, Op op, Precision precision, const ReduceState& state);

// The value of an array without elements, of the output type: init, or without one the identity.
Value EmptyValue(const ReduceArgs& args);

// The arguments for one array of a batch, by itself. Needs: they stand one by one.
ReduceArgs ArrayOf(ReduceArgs batch, uint64_t array);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_REDUCE_H_
