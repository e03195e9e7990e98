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

// Where the best of num_items >= 1 elements is, the first of which has position `position`: the same in any order, and
// in the type of the elements as in that of the output.
template <class T, class In, class O>
Candidate<T> BestOfGroup(const In* in, uint64_t num_items, uint64_t position) {
  uint64_t best = 0;
  for (uint64_t i = 1; i < num_items; ++i) {
    if (O::Beats(in[i], in[best])) best = i;
  }
  return {static_cast<T>(in[best]), position + best};
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

// The candidate of group `group`: of an array of dtype, whose elements combine as T.
template <class T, class O>
Candidate<T> ReduceGroup(const ReduceArgs& args, const Items<T>& items, uint64_t group, T neutral, O op) {
  const uint64_t first = group * kGroupItems;
  const uint64_t num_items = PartItems(args.num_items, kGroupItems, group);
  if constexpr (kIsExtremum<O>) {
    return VisitDType(args.dtype, [&](auto tag) -> Candidate<T> {
      using In = typename decltype(tag)::type;
      if constexpr (IsOutput(kDTypeOf<In>, kDTypeOf<T>)) {
        return BestOfGroup<T, In, O>(static_cast<const In*>(args.in) + first, num_items, args.first_item + first + 1);
      } else {
        FatalValue("ReduceGroup", args.dtype);
      }
    });
  } else {
    return {GroupValue(items, first, static_cast<int64_t>(num_items), neutral, op), ReduceState::kNothing};
  }
}

}  // namespace

Work RunReduce(const ReduceArgs& args) {
  const ReduceState state = args.state_in != nullptr ? *args.state_in : args.init;
  VisitDType(args.output(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto items = ItemsOf<T>(args.dtype, args.in, args.num_items, /*backwards=*/false);
    VisitFunction<T>(args.op, [&](auto op) {
      const T neutral = Neutral(args.op, args.output()).template As<T>();
      std::vector<Candidate<T>> groups(NumParts(args.num_items, kGroupItems));
      ParallelFor(groups.size(), [&](uint64_t group) { groups[group] = ReduceGroup(args, items, group, neutral, op); });
      Candidate<T> all = {state.value.As<T>(), state.position};
      for (const Candidate<T>& group : groups) all = Join(all, group, op);
      *args.state_out = {Value::Of(Canonical(all.value)), all.position};
    });
  });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
