#include "kernels/yardsticks/cpu/naive.h"

#include <cstring>
#include <vector>

#include "kernels/cpu/operators.h"
#include "kernels/yardsticks/cpu/textbook_ops.h"

namespace prefixd::cpu {
namespace {

// Outputs computed by one task. Later outputs take longer, so there are many tasks.
constexpr uint64_t kTaskItems = 64;

// start op the first num_items, in the scan's own direction.
template <class T, class O>
T Fold(const std::vector<T>& in, bool reverse, uint64_t num_items, T start, O op) {
  T value = start;
  for (uint64_t i = 0; i < num_items; ++i) value = op(value, in[reverse ? in.size() - 1 - i : i]);
  return Canonical(value);
}

}  // namespace

Work ScanNaively(const ScanArgs& args) {
  VisitTextbookOp(args.dtype, args.op, [&](auto tag, auto op) {
    using T = typename decltype(tag)::type;
    T start = args.init.As<T>();
    if (args.carry_in != nullptr) std::memcpy(&start, args.carry_in, sizeof(T));
    const auto* first = static_cast<const T*>(args.in);
    const std::vector<T> in(first, first + args.num_items);  // A copy: in may be out.
    auto* out = static_cast<T*>(args.out);
    const uint64_t own = args.kind == ScanKind::kInclusive ? 1 : 0;
    ParallelFor(NumParts(in.size(), kTaskItems), [&](uint64_t task) {
      const uint64_t begin = task * kTaskItems;
      for (uint64_t i = begin; i < begin + PartItems(in.size(), kTaskItems, task); ++i) {
        out[args.reverse ? in.size() - 1 - i : i] = Fold(in, args.reverse, i + own, start, op);
      }
    });
    if (args.carry_out == nullptr) return;
    const T carry = Fold(in, args.reverse, in.size(), start, op);
    std::memcpy(args.carry_out, &carry, sizeof(T));
  });
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = 2 * args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
