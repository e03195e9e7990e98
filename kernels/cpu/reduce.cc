#include "kernels/cpu/reduce.h"

#include <vector>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/ordered.h"

namespace prefixd::cpu {
namespace {

// A value and, for MIN and MAX, its ReduceState::position.
template <class T>
struct Candidate {
  T value;
  uint64_t position;
};

// The candidate of num_items >= 1 elements, the first of which has position `position`.
template <class T, class In, class O>
Candidate<T> ReduceGroup(const In* in, uint64_t num_items, uint64_t position, T neutral, O op) {
  if constexpr (kIsExtremum<O>) {  // The same in any order, and in either type.
    uint64_t best = 0;
    for (uint64_t i = 1; i < num_items; ++i) {
      if (O::Beats(in[i], in[best])) best = i;
    }
    return {static_cast<T>(in[best]), position + best};
  } else {
    return {GroupValue(in, 1, static_cast<int64_t>(num_items), neutral, op), ReduceState::kNothing};
  }
}

// Joins what came before with what came after.
template <class T, class O>
Candidate<T> Join(Candidate<T> before, Candidate<T> after, O op) {
  if constexpr (kIsExtremum<O>) {
    if (O::Beats(after.value, before.value)) return after;
    if (O::Beats(before.value, after.value)) return before;
    // A tie. What came before need not be the lower position: it may come from nowhere.
    return {before.value, std::min(before.position, after.position)};
  } else {
    return {op(before.value, after.value), before.position};
  }
}

}  // namespace

Work RunReduce(const ReduceArgs& args) {
  const ReduceState state = args.state_in != nullptr ? *args.state_in : args.init;
  VisitOutput(args.dtype, args.output(), [&](auto in_tag, auto out_tag) {
    using T = typename decltype(out_tag)::type;
    const auto* in = static_cast<const typename decltype(in_tag)::type*>(args.in);
    VisitOp<T>(args.op, [&](auto op) {
      const T neutral = Neutral(args.op, args.output()).template As<T>();
      std::vector<Candidate<T>> groups(NumParts(args.num_items, kGroupItems));
      ParallelFor(groups.size(), [&](uint64_t group) {
        const uint64_t first = group * kGroupItems;
        groups[group] = ReduceGroup(in + first, PartItems(args.num_items, kGroupItems, group),
                                    args.first_item + first + 1, neutral, op);
      });
      Candidate<T> all = {state.value.As<T>(), state.position};
      for (const Candidate<T>& group : groups) all = Join(all, group, op);
      *args.state_out = {Value::Of(Canonical(all.value)), all.position};
    });
  });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
