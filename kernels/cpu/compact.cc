#include "kernels/cpu/compact.h"

#include <vector>

#include "kernels/cpu/selector.h"

namespace prefixd::cpu {
namespace {

// Items that are selected, then gathered, while they are in the L1 cache. Selecting into a list of offsets has no
// branch to mispredict, and never writes an element past those that are kept.
constexpr uint64_t kGatherItems = 1024;

// Long enough that starting a task is lost in it; short enough that a block of doubles stays in a core's L2 cache
// between the two passes. A multiple of 8, so that no byte of a bit mask straddles two blocks.
constexpr uint64_t kBlockItems = uint64_t{1} << 14;
static_assert(kBlockItems % kGatherItems == 0);

template <class T>
void GatherValues(const CompactArgs& args, uint64_t first, const uint16_t* offsets, uint64_t num_kept, uint64_t place) {
  const T* in = static_cast<const T*>(args.in) + first;
  T* values = static_cast<T*>(args.values) + place;
  for (uint64_t k = 0; k < num_kept; ++k) values[k] = in[offsets[k]];
}

template <class Index>
void GatherIndices(const CompactArgs& args, uint64_t first, const uint16_t* offsets, uint64_t num_kept,
                   uint64_t place) {
  Index* indices = static_cast<Index*>(args.indices) + place;
  for (uint64_t k = 0; k < num_kept; ++k) indices[k] = static_cast<Index>(args.first_item + first + offsets[k]);
}

template <class Selects>
uint64_t CountBlock(uint64_t begin, uint64_t end, bool invert, Selects selects) {
  uint64_t num_kept = 0;
  for (uint64_t i = begin; i < end; ++i) num_kept += selects(i) != invert;
  return num_kept;
}

// Writes what [begin, end) keeps from `place` on; returns how much that is.
template <class Selects>
uint64_t CompactBlock(const CompactArgs& args, uint64_t begin, uint64_t end, uint64_t place, Selects selects) {
  const uint64_t place_of_block = place;
  uint16_t offsets[kGatherItems];
  for (uint64_t leaf = begin; leaf < end; leaf += kGatherItems) {
    const uint64_t leaf_items = std::min(kGatherItems, end - leaf);
    uint64_t num_kept = 0;
    for (uint64_t i = 0; i < leaf_items; ++i) {
      offsets[num_kept] = static_cast<uint16_t>(i);
      num_kept += selects(leaf + i) != args.invert;
    }
    if (args.values != nullptr) {
      VisitDType(args.dtype,
                 [&](auto tag) { GatherValues<typename decltype(tag)::type>(args, leaf, offsets, num_kept, place); });
    }
    if (args.indices != nullptr) {
      args.index_dtype == DType::kU32 ? GatherIndices<uint32_t>(args, leaf, offsets, num_kept, place)
                                      : GatherIndices<uint64_t>(args, leaf, offsets, num_kept, place);
    }
    place += num_kept;
  }
  return place - place_of_block;
}

template <class Selects>
uint64_t CompactAll(const CompactArgs& args, Selects selects) {
  const uint64_t num_blocks = NumParts(args.num_items, kBlockItems);
  const bool writes = args.values != nullptr || args.indices != nullptr;
  if (num_blocks == 1 && writes) return CompactBlock(args, 0, args.num_items, 0, selects);

  std::vector<uint64_t> places(num_blocks + 1);  // Block b's at b; behind them the count.
  ParallelFor(num_blocks, [&](uint64_t block) {
    const uint64_t begin = block * kBlockItems;
    places[block + 1] = CountBlock(begin, begin + PartItems(args.num_items, kBlockItems, block), args.invert, selects);
  });
  for (uint64_t block = 1; block <= num_blocks; ++block) places[block] += places[block - 1];
  if (writes) {
    ParallelFor(num_blocks, [&](uint64_t block) {
      const uint64_t begin = block * kBlockItems;
      CompactBlock(args, begin, begin + PartItems(args.num_items, kBlockItems, block), places[block], selects);
    });
  }
  return places[num_blocks];
}

}  // namespace

Work RunCompact(const CompactArgs& args) {
  *args.count = 0;
  if (args.num_items == 0) return {};
  VisitSelector(args, [&](auto selects) { *args.count = CompactAll(args, selects); });
  const bool writes = args.values != nullptr || args.indices != nullptr;
  return {.launches = args.num_items > kBlockItems && writes ? uint64_t{2} : uint64_t{1},
          .num_bytes = NumBytes(args, *args.count)};
}

}  // namespace prefixd::cpu
