#include "kernels/cpu/scan.h"

#include <cstring>
#include <vector>

#include "kernels/cpu/operators.h"

namespace prefixd::cpu {
namespace {

// x[0] op x[step] op ... over num_items >= 1 elements.
template <class T, class O>
T Aggregate(const T* in, ptrdiff_t step, uint64_t num_items, O op) {
  T aggregate = in[0];
  for (ptrdiff_t i = 1; i < static_cast<ptrdiff_t>(num_items); ++i) aggregate = op(aggregate, in[i * step]);
  return aggregate;
}

// Scans num_items >= 1 elements behind `prefix` and returns the prefix of the next block. Each element is the prefix
// op what Aggregate makes of the block up to there, so that the last one equals the prefix that the fold gives the
// next block, bit for bit. Reads an element before it writes its place: in may be out.
template <class T, class O, ScanKind kKind, ptrdiff_t kStep>
T ScanBlock(const T* in, T* out, uint64_t num_items, T prefix, O op) {
  T aggregate = in[0];
  out[0] = Canonical(kKind == ScanKind::kExclusive ? prefix : op(prefix, aggregate));
  for (ptrdiff_t i = 1; i < static_cast<ptrdiff_t>(num_items); ++i) {
    const T next = op(aggregate, in[i * kStep]);
    out[i * kStep] = Canonical(op(prefix, kKind == ScanKind::kExclusive ? aggregate : next));
    aggregate = next;
  }
  return op(prefix, aggregate);
}

template <class T, class O, ScanKind kKind, ptrdiff_t kStep>
T ScanAll(const ScanArgs& args, T start, O op) {
  const auto* in = static_cast<const T*>(args.in);
  auto* out = static_cast<T*>(args.out);
  const uint64_t num_blocks = NumBlocks(args.num_items);
  const auto first_of = [&](uint64_t block) {  // Where a block begins, in the scan's own direction.
    const uint64_t item = block * kBlockItems;
    return kStep > 0 ? item : args.num_items - 1 - item;
  };
  if (num_blocks == 1)
    return ScanBlock<T, O, kKind, kStep>(in + first_of(0), out + first_of(0), args.num_items, start, op);

  std::vector<T> prefixes(num_blocks + 1);  // Of block b at b; nobody needs the last block's aggregate.
  ParallelFor(num_blocks - 1,
              [&](uint64_t block) { prefixes[block + 1] = Aggregate(in + first_of(block), kStep, kBlockItems, op); });
  prefixes[0] = start;
  for (uint64_t block = 1; block < num_blocks; ++block) prefixes[block] = op(prefixes[block - 1], prefixes[block]);
  ParallelFor(num_blocks, [&](uint64_t block) {
    const uint64_t first = first_of(block);
    const T next =
        ScanBlock<T, O, kKind, kStep>(in + first, out + first, BlockItems(args.num_items, block), prefixes[block], op);
    if (block == num_blocks - 1) prefixes[num_blocks] = next;
  });
  return prefixes[num_blocks];
}

template <class T, class O>
T ScanAll(const ScanArgs& args, T start, O op) {
  if (args.kind == ScanKind::kInclusive) {
    return args.reverse ? ScanAll<T, O, ScanKind::kInclusive, -1>(args, start, op)
                        : ScanAll<T, O, ScanKind::kInclusive, 1>(args, start, op);
  }
  return args.reverse ? ScanAll<T, O, ScanKind::kExclusive, -1>(args, start, op)
                      : ScanAll<T, O, ScanKind::kExclusive, 1>(args, start, op);
}

}  // namespace

Work RunScan(const ScanArgs& args) {
  VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T carry = args.init.As<T>();
    if (args.carry_in != nullptr) std::memcpy(&carry, args.carry_in, sizeof(T));
    if (args.num_items > 0) {
      carry = VisitOp<T>(args.op, [&](auto op) { return ScanAll(args, carry, op); });
    }
    carry = Canonical(carry);
    if (args.carry_out != nullptr) std::memcpy(args.carry_out, &carry, sizeof(T));
  });
  if (args.num_items == 0) return {};
  return {.launches = args.num_items > kBlockItems ? uint64_t{2} : uint64_t{1},
          .num_bytes = 2 * args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
