#include "kernels/cpu/scan.h"

#include <cstring>
#include <vector>

#include "kernels/cpu/operators.h"
#include "kernels/cpu/ordered.h"

namespace prefixd::cpu {
namespace {

// Where the results go, in the order of the scan.
template <class T>
struct Results {
  T* out;
  uint64_t last;
  bool backwards;

  void Store(uint64_t first, int count, const T* results) const {
    if (backwards) {
      T* const to = out + (last - first);
      for (int i = 0; i < count; ++i) to[-i] = Canonical(results[i]);
    } else {
      T* const to = out + first;
      for (int i = 0; i < count; ++i) to[i] = Canonical(results[i]);
    }
  }
};

// Scans a group behind `prefix` and returns the prefix of the next. Reads a leaf before it writes its place: in may be
// out.
template <class T, class O>
T ScanGroup(ScanKind kind, const Items<T>& items, const Results<T>& results, uint64_t group_first, int64_t num_items,
            T prefix, T neutral, O op) {
  T last = prefix;
  const auto write = [&](int64_t first, int leaf_items, const BeforeLeaf<T>& before, const T* values) {
    T scanned[kLeafItems + 1];
    scanned[0] = last;
    for (int i = 0; i < leaf_items; ++i) {
      scanned[i + 1] = op(prefix, op(before.group, op(before.tile, values[i])));
    }
    last = scanned[leaf_items];
    results.Store(group_first + first, leaf_items, scanned + (kind == ScanKind::kInclusive ? 1 : 0));
  };
  VisitLeaves(items, group_first, num_items, neutral, op, write);
  return last;
}

// Returns the value of the array behind `start`. Needs: args.num_items > 0.
template <class T, class O>
T ScanAll(const ScanArgs& args, const Items<T>& items, T start, O op) {
  const Results<T> results = {static_cast<T*>(args.out), args.num_items - 1, args.reverse};
  const T neutral = Neutral(args.op, args.output()).template As<T>();
  const uint64_t num_groups = NumParts(args.num_items, kGroupItems);
  std::vector<T> prefixes(num_groups + 1);  // Group g's at g. The value of the last group comes from its scan.
  ParallelFor(num_groups - 1, [&](uint64_t group) {
    prefixes[group + 1] = GroupValue(items, group * kGroupItems, kGroupItems, neutral, op);
  });
  prefixes[0] = start;
  for (uint64_t group = 1; group < num_groups; ++group) prefixes[group] = op(prefixes[group - 1], prefixes[group]);
  ParallelFor(num_groups, [&](uint64_t group) {
    const auto group_items = static_cast<int64_t>(PartItems(args.num_items, kGroupItems, group));
    const T next = ScanGroup(args.kind, items, results, group * kGroupItems, group_items, prefixes[group], neutral, op);
    if (group == num_groups - 1) prefixes[num_groups] = next;
  });
  return prefixes[num_groups];
}

}  // namespace

Work RunScan(const ScanArgs& args) {
  VisitDType(args.output(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T carry = args.init.As<T>();
    if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(T));
    if (args.num_items > 0) {
      const auto items = ItemsOf<T>(args.dtype, args.in, args.num_items, args.reverse);
      carry = VisitFunction<T>(args.op, [&](auto op) { return ScanAll(args, items, carry, op); });
    }
    carry = Canonical(carry);
    if (args.carry_out != nullptr) std::memcpy(args.carry_out, &carry, sizeof(T));
  });
  if (args.num_items == 0) return {};
  return {.launches = args.num_items > static_cast<uint64_t>(kGroupItems) ? uint64_t{2} : uint64_t{1},
          .num_bytes = args.num_items * (SizeOf(args.dtype) + SizeOf(args.output()))};
}

}  // namespace prefixd::cpu
