#include "kernels/cpu/scan.h"

#include <algorithm>
#include <cstddef>

#include "kernels/args/check.h"
#include "kernels/cpu/any_prefix.h"
#include "kernels/cpu/caches.h"

namespace prefixd::cpu {
namespace {

// What ScanFunctions::reduce gives.
struct PartValues {
  // A value of a tile for each tile: an element, or as long as two of what elements combine in, which of f16 and bf16
  // are f32.
  alignas(Step<double>) std::byte bytes[4 * kPartBytes / kTileItems];
  uint64_t count;
};

// An array cut into parts.
class Parts {
 public:
  // all_bytes: as RunScanAmong.
  Parts(const ScanArgs& args, uint64_t all_bytes)
      : args_(args),
        part_items_(kPartBytes / std::max(SizeOf(args.dtype), SizeOf(args.output()))),
        stream_(args.in != args.out && args.num_items * SizeOf(args.output()) >= kMinStreamBytes &&
                IsLargerThanCaches(all_bytes)) {}

  uint64_t FullPartItems() const { return part_items_; }
  uint64_t count() const { return NumParts(args_.num_items, part_items_); }

  // `next`: the part to fetch meanwhile; `part` itself or none for nothing.
  ScanPart At(uint64_t part, uint64_t next) const {
    const uint64_t first = First(part);
    return {.in = static_cast<const std::byte*>(args_.in) + first * SizeOf(args_.dtype),
            .out = static_cast<std::byte*>(args_.out) + first * SizeOf(args_.output()),
            .num_items = PartItems(args_.num_items, part_items_, part),
            .next = static_cast<const std::byte*>(args_.in) + First(next < count() ? next : part) * SizeOf(args_.dtype),
            .reverse = args_.reverse,
            .exclusive = args_.kind == ScanKind::kExclusive,
            .stream = stream_,
            .coefficients = Advance(args_.coefficients, first * SizeOf(args_.dtype)),
            .coefficient = &args_.coefficient.bits};
  }

 private:
  // The index of the first of a part's items in memory.
  uint64_t First(uint64_t part) const {
    const uint64_t behind = part * part_items_;
    return args_.reverse ? args_.num_items - behind - PartItems(args_.num_items, part_items_, part) : behind;
  }

  const ScanArgs& args_;
  uint64_t part_items_;
  bool stream_;
};

void ScanAll(const Kernels& kernels, const ScanArgs& args, uint64_t all_bytes, AnyPrefix* prefix) {
  const ScanFunctions& functions = kernels.Scan(args.dtype, args.output(), args.op, args.precision);
  const Parts parts(args, all_bytes);
  const uint64_t last = parts.count() - 1;
  const int num_threads = NumThreads(parts.count());
  if (num_threads == 1) {
    for (uint64_t part = 0; part <= last; ++part) functions.scan(parts.At(part, part), prefix->data());
    return;
  }

  AnyPrefix end;
  const auto reduce = [&](uint64_t part) {
    PartValues values;
    values.count = 0;
    if (part == last) return values;  // Nothing comes behind it.
    const ScanPart p = parts.At(part, part);
    functions.reduce(p, values.bytes);
    values.count = IsOrdered(args.output(), args.op) ? parts.FullPartItems() / kTileItems : 1;
    return values;
  };
  const auto add = [&](const PartValues& values, AnyPrefix* sum) {
    functions.add(values.bytes, values.count, sum->data());
  };
  const auto finish = [&](uint64_t part, AnyPrefix before, const PartValues&, uint64_t next) {
    functions.scan(parts.At(part, next), before.data());
    if (part == last) end = before;
  };
  const auto whole = [&](uint64_t part, AnyPrefix* before, uint64_t next) {
    functions.scan(parts.At(part, next), before->data());
    if (part == last) end = *before;
  };
  Chain(num_threads, parts.count(), prefix, reduce, add, finish, whole);
  *prefix = end;
}

}  // namespace

Work RunScan(const Kernels& kernels, const ScanArgs& args) {
  return RunScanAmong(kernels, args, args.num_items * ItemBytes(args));
}

Work RunScanAmong(const Kernels& kernels, const ScanArgs& args, uint64_t all_bytes) {
  AnyPrefix prefix = AnyPrefix::Before(args);
  if (args.num_items > 0) ScanAll(kernels, args, all_bytes, &prefix);
  if (args.carry_out != nullptr) prefix.PutCarry(args, args.carry_out);
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * ItemBytes(args)};
}

}  // namespace prefixd::cpu
