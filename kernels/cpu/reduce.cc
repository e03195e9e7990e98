#include "kernels/cpu/reduce.h"

#include <cstddef>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "kernels/cpu/operators.h"
#include "kernels/wide_sum.h"

namespace prefixd::cpu {
namespace {

const void* ItemAt(const ReduceArgs& args, uint64_t item) {
  return static_cast<const std::byte*>(args.in) + item * SizeOf(args.dtype);
}

// One of each part or tile. Those of a short array need no memory of their own.
template <class T>
using Values = absl::InlinedVector<T, 16>;

// The values of tiles or parts, in their order, behind `start`.
template <class T>
T Fold(const ScanFunctions& functions, const void* values, uint64_t num_values, T start, T neutral) {
  Prefix<T> prefix = PrefixOf(start, neutral);
  functions.add(values, num_values, &prefix);
  return prefix.last;
}

// The value of the array behind `start`.
template <class T>
T Combine(const Kernels& kernels, const ReduceArgs& args, T start, T neutral) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const uint64_t part_items = kPartBytes / std::max(SizeOf(args.dtype), sizeof(T));
  const bool is_ordered = IsOrdered(args.output(), args.op);
  const uint64_t value_items = is_ordered ? kTileItems : part_items;  // How many items a value is of.
  Values<T> values(NumParts(args.num_items, value_items));
  ForParts(NumParts(args.num_items, part_items), [&](uint64_t part) {
    const uint64_t first = part * part_items;
    const void* const in = ItemAt(args, first);
    functions.reduce({.in = in, .out = nullptr, .num_items = PartItems(args.num_items, part_items, part), .next = in},
                     &values[first / value_items]);
  });
  return Fold(functions, values.data(), values.size(), start, neutral);
}

// The state behind `state`, by an operator that keeps no positions, or of values alone. combine(start, neutral) is the
// value of all items behind `start`.
template <class T, class CombineItems>
ReduceState StateBehind(const ReduceArgs& args, const ReduceState& state, const CombineItems& combine) {
  if constexpr (kIsFloating<T>) {
    if (args.op == Op::kLogAddExp) {
      const auto neutral = LogAddExpOf<T>::Load(Neutral(args.op, args.StateDType()).As<T>());
      return StateOf(Settled(combine(ScaledOf<T>(state), neutral)), state.position);
    }
  }
  if (!args.IsWide()) {
    const T value = combine(state.value.As<T>(), Neutral(args.op, args.StateDType()).As<T>());
    return {Value::Of(Canonical(value)), state.position};
  }
  const auto start = state.value.As<double>();
  if (args.dtype == DType::kF32) return {Value::Of(Canonical(combine(start, -0.0))), state.position};
  const Compensated<double> sum = Settled(combine(Compensated<double>{start, state.second}, CompensatedOf(-0.0)));
  return {Value::Of(sum.sum), state.position, sum.error};
}

// The value of all items behind args.init, by combine, as a result.
template <class CombineItems>
void PutValue(const ReduceArgs& args, const CombineItems& combine) {
  ReduceState state;
  VisitAccumulator(args.output(),
                   [&](auto tag) { state = StateBehind<typename decltype(tag)::type>(args, StartOf(args), combine); });
  const Value value = ResultOf(args.output(), args.op, args.precision, state);
  std::memcpy(args.values, &value, SizeOf(args.output()));
}

// The state behind `state`, by an operator that keeps positions.
template <class T, class O>
ReduceState FindExtremum(const Kernels& kernels, const ReduceArgs& args, const ReduceState& state) {
  const auto dtype = static_cast<int>(args.dtype);
  const auto find = std::is_same_v<O, Min> ? kernels.extrema->min[dtype] : kernels.extrema->max[dtype];
  const uint64_t part_items = kPartBytes / SizeOf(args.dtype);
  Values<uint64_t> indices(NumParts(args.num_items, part_items));
  ForParts(indices.size(), [&](uint64_t part) {
    const uint64_t first = part * part_items;
    indices[part] = first + find(ItemAt(args, first), PartItems(args.num_items, part_items, part));
  });
  T value = state.value.As<T>();
  uint64_t position = state.position;
  VisitDType(args.dtype, [&](auto tag) {
    using In = typename decltype(tag)::type;
    for (const uint64_t index : indices) {
      const auto item = static_cast<T>(static_cast<const In*>(args.in)[index]);
      if (O::Beats(item, value)) {
        value = item;
        position = args.first_item + index + 1;
      } else if (!O::Beats(value, item)) {
        // A tie. What came before need not be the lower position: it may come from nowhere.
        position = std::min(position, args.first_item + index + 1);
      }
    }
  });
  return {Value::Of(Canonical(value)), position};
}

}  // namespace

void ReduceToValue(const Kernels& kernels, const ReduceArgs& args) {
  PutValue(args, [&](auto start, auto neutral) { return Combine(kernels, args, start, neutral); });
}

void FoldToValue(const Kernels& kernels, const ReduceArgs& args, const void* values, uint64_t num_values) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  PutValue(args, [&](auto start, auto neutral) { return Fold(functions, values, num_values, start, neutral); });
}

Work RunReduce(const Kernels& kernels, const ReduceArgs& args) {
  const ReduceState state = args.state_in != nullptr ? *args.state_in : StartOf(args);
  VisitAccumulator(args.output(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    VisitFunction<T>(args.op, [&](auto op) {
      if constexpr (kIsExtremum<decltype(op)>) {
        *args.state_out = FindExtremum<T, decltype(op)>(kernels, args, state);
      } else {
        *args.state_out = StateBehind<T>(
            args, state, [&](auto start, auto neutral) { return Combine(kernels, args, start, neutral); });
      }
    });
  });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
