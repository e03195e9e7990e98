#include "kernels/yardsticks/cpu/sequential.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/selector.h"

namespace prefixd::cpu {
namespace {

// Items of which an operator is: elements as they are, but of log_add_exp scaled exponentials.
template <class T, class O>
struct ItemsOf {
  using Item = T;
  static Item Load(T element) { return element; }
  static T Store(Item item) { return Canonical(item); }
  static Item Settle(Item item) { return Canonical(item); }
  static Item FromState(const ReduceState& state) { return state.value.As<T>(); }
  static ReduceState ToState(Item item, uint64_t position) { return {Value::Of(item), position}; }
};
template <class T>
struct ItemsOf<T, AddScaled> : LogAddExpOf<T> {
  using Item = Scaled<T>;
  static Item Settle(Item item) { return Settled(item); }
  static Item FromState(const ReduceState& state) { return ScaledOf<T>(state); }
  static ReduceState ToState(Item item, uint64_t position) { return StateOf(item, position); }
};

// Returns the value behind the last element. Reads an element before it writes to its place: in may be out.
template <class In, class Out, class Items, class O>
typename Items::Item ScanItems(const ScanArgs& args, typename Items::Item start, O op) {
  using T = Accumulator<Out>;
  const auto* in = static_cast<const In*>(args.in);
  auto* out = static_cast<Out*>(args.out);
  auto before = start;
  for (uint64_t i = 0; i < args.num_items; ++i) {
    const uint64_t item = args.reverse ? args.num_items - 1 - i : i;
    const auto through = op(before, Items::Load(static_cast<T>(in[item])));
    out[item] = static_cast<Out>(Items::Store(args.kind == ScanKind::kInclusive ? through : before));
    before = through;
  }
  return before;
}

template <class In, class T, class O>
void ReduceItems(const ReduceArgs& args, ReduceState* state, O op) {
  const auto* in = static_cast<const In*>(args.in);
  using Items = ItemsOf<T, O>;
  auto value = Items::FromState(*state);
  for (uint64_t i = 0; i < args.num_items; ++i) {
    const auto item = static_cast<T>(in[i]);
    if constexpr (kIsExtremum<O>) {
      const uint64_t position = args.first_item + i + 1;
      if (O::Beats(item, value)) {
        value = item;
        state->position = position;
      } else if (!O::Beats(value, item)) {  // A tie.
        state->position = std::min(state->position, position);
      }
    } else {
      value = op(value, Items::Load(item));
    }
  }
  *state = Items::ToState(Items::Settle(value), state->position);
}

template <class T>
void Copy(const void* from, uint64_t item, void* to, uint64_t place) {
  static_cast<T*>(to)[place] = static_cast<const T*>(from)[item];
}

}  // namespace

Work ScanSequentially(const ScanArgs& args) {
  VisitOutput(args.dtype, args.output(), [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using Out = typename decltype(out_tag)::type;
    using T = Accumulator<Out>;
    VisitFunction<T>(args.op, [&](auto op) {
      using Items = ItemsOf<T, decltype(op)>;
      auto carry = Items::Load(static_cast<T>(args.init.As<Out>()));
      if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(carry));
      carry = Items::Settle(ScanItems<In, Out, Items>(args, carry, op));
      if (args.carry_out != nullptr) std::memcpy(args.carry_out, &carry, sizeof(carry));
    });
  });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * (SizeOf(args.dtype) + SizeOf(args.output()))};
}

Work ReduceSequentially(const ReduceArgs& args) {
  ReduceState state = args.state_in != nullptr ? *args.state_in : StartOf(args);
  VisitOutput(args.dtype, args.output(), [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using T = Accumulator<typename decltype(out_tag)::type>;
    VisitFunction<T>(args.op, [&](auto op) { ReduceItems<In, T>(args, &state, op); });
  });
  *args.state_out = state;
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

Work CompactSequentially(const CompactArgs& args) {
  uint64_t kept = 0;
  VisitSelector(args, [&](auto selects) {
    for (uint64_t i = 0; i < args.num_items; ++i) {
      if (selects(i) == args.invert) continue;
      if (args.values != nullptr) {
        VisitDType(args.dtype, [&](auto tag) { Copy<typename decltype(tag)::type>(args.in, i, args.values, kept); });
      }
      if (args.indices != nullptr) {
        const uint64_t index = args.first_item + i;
        if (args.index_dtype == DType::kU32) {
          static_cast<uint32_t*>(args.indices)[kept] = static_cast<uint32_t>(index);
        } else {
          static_cast<uint64_t*>(args.indices)[kept] = index;
        }
      }
      ++kept;
    }
  });
  *args.count = kept;
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = NumBytes(args, kept)};
}

}  // namespace prefixd::cpu
