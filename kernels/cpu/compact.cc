#include "kernels/cpu/compact.h"

#include <cstddef>

#include "kernels/cpu/selector.h"

namespace prefixd::cpu {
namespace {

// Whole words of bits.
constexpr uint64_t kMaxPartItems = uint64_t{1} << 16;

struct PartBits {
  uint64_t num_kept;
  uint64_t bits[kMaxPartItems / 64];
};

uint64_t PartItemsOf(const CompactArgs& args) { return std::min(kMaxPartItems, kPartBytes / SizeOf(args.dtype)); }

// Says which of the items from `first` on are kept.
uint64_t SelectPart(const Kernels& kernels, const CompactArgs& args, uint64_t first, uint64_t num_items,
                    uint64_t* bits) {
  constexpr uint8_t kZero = 0;
  const CompactTable& table = *kernels.compacts;
  const auto* const mask = static_cast<const std::byte*>(args.mask);
  switch (args.selector) {
    case Selector::kByteMask:
      return table.compare[static_cast<int>(DType::kU8)][static_cast<int>(Comparison::kNotEqual)](
          mask + first, num_items, &kZero, args.invert, bits);
    case Selector::kBitMask:
      return table.copy_bits(mask + first / 8, num_items, args.invert, bits);
    case Selector::kPredicate:
      return table.compare[static_cast<int>(args.dtype)][static_cast<int>(args.comparison)](
          static_cast<const std::byte*>(args.in) + first * SizeOf(args.dtype), num_items, &args.value, args.invert,
          bits);
  }
  FatalValue("SelectPart", args.selector);
}

// Writes what is kept of the items from `first` on, from `place` on.
void KeepPart(const Kernels& kernels, const CompactArgs& args, uint64_t first, uint64_t num_items, uint64_t place,
              const PartBits& part) {
  const CompactTable& table = *kernels.compacts;
  if (args.values != nullptr) {
    const uint64_t size = SizeOf(args.dtype);
    auto* const out = static_cast<std::byte*>(args.values) + place * size;
    table.keep[static_cast<int>(args.dtype)](static_cast<const std::byte*>(args.in) + first * size, part.bits,
                                             num_items, out, out + part.num_kept * size);
  }
  if (args.indices != nullptr) {
    const uint64_t size = SizeOf(args.index_dtype);
    auto* const out = static_cast<std::byte*>(args.indices) + place * size;
    const auto keep = args.index_dtype == DType::kU32 ? table.keep_indices_32 : table.keep_indices_64;
    keep(args.first_item + first, part.bits, num_items, out, out + part.num_kept * size);
  }
}

uint64_t CompactAll(const Kernels& kernels, const CompactArgs& args) {
  const uint64_t part_items = PartItemsOf(args);
  const uint64_t num_parts = NumParts(args.num_items, part_items);
  const int num_threads = NumThreads(num_parts);
  const auto select = [&](uint64_t part) {
    PartBits bits;
    bits.num_kept =
        SelectPart(kernels, args, part * part_items, PartItems(args.num_items, part_items, part), bits.bits);
    return bits;
  };
  const auto add = [](const PartBits& part, uint64_t* place) { *place += part.num_kept; };
  const auto keep = [&](uint64_t part, uint64_t place, const PartBits& bits, uint64_t /*next*/) {
    KeepPart(kernels, args, part * part_items, PartItems(args.num_items, part_items, part), place, bits);
  };
  const auto whole = [&](uint64_t part, uint64_t* place, uint64_t next) {
    const PartBits bits = select(part);
    keep(part, *place, bits, next);
    add(bits, place);
  };
  uint64_t kept = 0;
  if (num_threads > 1) {
    Chain(num_threads, num_parts, &kept, select, add, keep, whole);
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
