#include "kernels/cpu/scan.h"

#include <cstring>
#include <vector>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/ordered.h"

namespace prefixd::cpu {
namespace {

// Scans a group behind `prefix` and returns the prefix of the next. Reads a leaf before it writes its place: in may be
// out.
template <class In, class T, class O, ptrdiff_t kStep>
T ScanGroup(ScanKind kind, const In* in, T* out, int64_t num_items, T prefix, T neutral, O op) {
  T last = prefix;
  const auto write = [&](int64_t first, int leaf_items, const BeforeLeaf<T>& before, const T* values) {
    T scanned[kLeafItems + 1];
    scanned[0] = last;
    for (int i = 0; i < leaf_items; ++i) {
      scanned[i + 1] = op(prefix, op(before.group, op(before.tile, values[i])));
    }
    last = scanned[leaf_items];
    const T* const results = scanned + (kind == ScanKind::kInclusive ? 1 : 0);
    for (int i = 0; i < leaf_items; ++i) out[(first + i) * kStep] = Canonical(results[i]);
  };
  VisitLeaves(in, kStep, num_items, neutral, op, write);
  return last;
}

template <class In, class T, class O, ptrdiff_t kStep>
T ScanAll(const ScanArgs& args, T start, O op) {
  const auto* in = static_cast<const In*>(args.in);
  auto* out = static_cast<T*>(args.out);
  const T neutral = Neutral(args.op, args.output()).template As<T>();
  const uint64_t num_groups = NumParts(args.num_items, kGroupItems);
  const auto items_of = [&](uint64_t group) { return PartItems(args.num_items, kGroupItems, group); };
  const auto first_of = [&](uint64_t group) {  // Where a group begins, in the scan's own direction.
    const uint64_t item = group * kGroupItems;
    return kStep > 0 ? item : args.num_items - 1 - item;
  };

  std::vector<T> prefixes(num_groups + 1);  // Of group g at g. Nobody needs the last group's value: its scan gives it.
  ParallelFor(num_groups - 1, [&](uint64_t group) {
    prefixes[group + 1] = GroupValue(in + first_of(group), kStep, kGroupItems, neutral, op);
  });
  prefixes[0] = start;
  for (uint64_t group = 1; group < num_groups; ++group) prefixes[group] = op(prefixes[group - 1], prefixes[group]);
  ParallelFor(num_groups, [&](uint64_t group) {
    const uint64_t first = first_of(group);
    const T next =
        ScanGroup<In, T, O, kStep>(args.kind, in + first, out + first, items_of(group), prefixes[group], neutral, op);
    if (group == num_groups - 1) prefixes[num_groups] = next;
  });
  return prefixes[num_groups];
}

}  // namespace

Work RunScan(const ScanArgs& args) {
  VisitOutput(args.dtype, args.output(), [&](auto in_tag, auto out_tag) {
    using In = typename decltype(in_tag)::type;
    using T = typename decltype(out_tag)::type;
    T carry = args.init.As<T>();
    if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(T));
    if (args.num_items > 0) {
      carry = VisitOp<T>(args.op, [&](auto op) {
        using O = decltype(op);
        return args.reverse ? ScanAll<In, T, O, -1>(args, carry, op) : ScanAll<In, T, O, 1>(args, carry, op);
      });
    }
    carry = Canonical(carry);
    if (args.carry_out != nullptr) std::memcpy(args.carry_out, &carry, sizeof(T));
  });
  if (args.num_items == 0) return {};
  return {.launches = args.num_items > static_cast<uint64_t>(kGroupItems) ? uint64_t{2} : uint64_t{1},
          .num_bytes = args.num_items * (SizeOf(args.dtype) + SizeOf(args.output()))};
}

}  // namespace prefixd::cpu
