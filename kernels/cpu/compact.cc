#include "kernels/cpu/compact.h"

#include <cstddef>

#include "kernels/cpu/caches.h"
#include "kernels/cpu/selector.h"
#include "kernels/interval.h"

namespace prefixd::cpu {
namespace {

// Whole words of bits.
constexpr uint64_t kMaxPartItems = uint64_t{1} << 16;

struct PartBits {
  uint64_t num_kept;
  uint64_t bits[kMaxPartItems / 64];
};

uint64_t PartItemsOf(const CompactArgs& args) { return std::min(kMaxPartItems, kPartBytes / SizeOf(args.dtype)); }

// Those that the predicate keeps, if one selects.
ItemInterval KeptInterval(const CompactArgs& args) {
  if (args.selector != Selector::kPredicate) return {};
  return VisitDType(args.dtype, [&](auto tag) -> ItemInterval {
    const auto kept = IntervalOf<typename decltype(tag)::type>(args.comparison, args.value, args.end);
    return {.low = Value::Of(kept.low), .high = Value::Of(kept.high), .outside = kept.outside != args.invert};
  });
}

// Says which of the items from `first` on are kept. interval: KeptInterval.
uint64_t SelectPart(const Kernels& kernels, const CompactArgs& args, const ItemInterval& interval, uint64_t first,
                    uint64_t num_items, uint64_t* bits) {
  const CompactTable& table = *kernels.compacts;
  const auto* const mask = static_cast<const std::byte*>(args.mask);
  switch (args.selector) {
    case Selector::kByteMask:
      return table.pack_bytes(mask + first, num_items, args.invert, bits);
    case Selector::kBitMask:
      return table.copy_bits(mask + first / 8, num_items, args.invert, bits);
    case Selector::kPredicate:
      return table.select[static_cast<int>(args.dtype)](
          static_cast<const std::byte*>(args.in) + first * SizeOf(args.dtype), num_items, interval, bits);
  }
  FatalValue("SelectPart", args.selector);
}

// Writes what is kept of the items from `first` on, from `place` on, and fetches as many items from `next` on.
void WritePart(const Kernels& kernels, const CompactArgs& args, const KeptPart& part, uint64_t first, uint64_t next,
               uint64_t place) {
  const CompactTable& table = *kernels.compacts;
  if (args.values != nullptr) {
    const uint64_t size = SizeOf(args.dtype);
    const auto* const in = static_cast<const std::byte*>(args.in);
    table.keep[static_cast<int>(args.dtype)](part, in + first * size, in + next * size,
                                             static_cast<std::byte*>(args.values) + place * size);
  }
  if (args.indices != nullptr) {
    const auto keep = args.index_dtype == DType::kU32 ? table.keep_indices_32 : table.keep_indices_64;
    keep(part, args.first_item + first, static_cast<std::byte*>(args.indices) + place * SizeOf(args.index_dtype));
  }
}

uint64_t CompactAll(const Kernels& kernels, const CompactArgs& args) {
  const uint64_t part_items = PartItemsOf(args);
  const uint64_t num_parts = NumParts(args.num_items, part_items);
  const int num_threads = NumThreads(num_parts);
  const bool stream = IsLargerThanCaches(args.num_items * SizeOf(args.dtype));
  const ItemInterval interval = KeptInterval(args);
  const auto select = [&](uint64_t part) {
    PartBits bits;
    bits.num_kept =
        SelectPart(kernels, args, interval, part * part_items, PartItems(args.num_items, part_items, part), bits.bits);
    return bits;
  };
  const auto add = [](const PartBits& part, uint64_t* place) { *place += part.num_kept; };
  const auto write = [&](uint64_t part, uint64_t place, const PartBits& bits, uint64_t next) {
    const KeptPart kept = {.bits = bits.bits,
                           .num_items = PartItems(args.num_items, part_items, part),
                           .num_kept = bits.num_kept,
                           .stream = stream};
    WritePart(kernels, args, kept, part * part_items, (next < num_parts ? next : part) * part_items, place);
  };
  const auto whole = [&](uint64_t part, uint64_t* place, uint64_t next) {
    const PartBits bits = select(part);
    write(part, *place, bits, next);
    add(bits, place);
  };
  uint64_t kept = 0;
  if (num_threads > 1) {
    Chain(num_threads, num_parts, &kept, select, add, write, whole);
    return kept;
  }
  for (uint64_t part = 0; part < num_parts; ++part) whole(part, &kept, part + 1);
  return kept;
}

}  // namespace

Work RunCompact(const Kernels& kernels, const CompactArgs& args) {
  *args.count = 0;
  if (args.num_items == 0) return {};
  *args.count = CompactAll(kernels, args);
  return {.launches = 1, .num_bytes = NumBytes(args, *args.count)};
}

}  // namespace prefixd::cpu
