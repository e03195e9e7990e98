// Which tiles of many arrays a block of a kernel has, where the arrays stand one by one: of one length, or segments,
// whose lengths differ. All tiles of all arrays are numbered: they have slots, and a block has as many in a row.
#ifndef PREFIXD_KERNELS_CUDA_SLOT_TABLE_CUH_
#define PREFIXD_KERNELS_CUDA_SLOT_TABLE_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

inline constexpr int kRowReduceWarps = 8;  // In a block.
inline constexpr int kMaxSlotsOfWarp = 16;
inline constexpr int kMaxSlotsOfBlock = kMaxSlotsOfWarp * kRowReduceWarps;

// A tile of an array.
struct Slot {
  uint64_t begin = 0;  // Where its elements begin.
  uint32_t array = 0;
  uint32_t tile = 0;
  uint32_t num_tiles = 0;  // The array has so many, at least 1. 0: there is no such tile.
  int num_items = 0;
};

struct SlotTable {
  Slot slots[kMaxSlotsOfBlock];
  uint64_t offsets[kMaxSlotsOfBlock + 2];  // From that of the block's first segment on.
  uint64_t first_segment;
  uint32_t ticket;
};

// Arrays of one length: those of several tiles have as many slots.
template <class Params>
__device__ Slot RowSlot(const Params& p, uint64_t number) {
  const uint64_t array = p.array_tiles == 1 ? number : number / p.array_tiles;
  const uint64_t tile = number - array * p.array_tiles;
  return {.begin = array * p.each.num_items + tile * kTileItems,
          .array = static_cast<uint32_t>(array),
          .tile = static_cast<uint32_t>(tile),
          .num_tiles = static_cast<uint32_t>(p.array_tiles),
          .num_items = NumValid(p.each.num_items, tile * kTileItems)};
}

// Segments: that with the number a has the slots from offsets[a] / kTileItems + a on, which are as many as it can need.
inline __device__ uint64_t FirstSlotOf(uint64_t segment, uint64_t offset) { return offset / kTileItems + segment; }

// The last segment whose slots begin at `slot` or before. Called by a warp.
template <class Params>
__device__ uint64_t FindSegment(const Params& p, uint64_t slot) {
  uint64_t low = 0, high = p.num_arrays;  // It is from `low` on, and before `high`.
  while (high - low > 1) {
    const uint64_t step = (high - low - 1) / kWarpThreads + 1;
    const uint64_t probe = low + step * (LaneOfWarp() + 1);
    const bool begins = probe < high && FirstSlotOf(probe, p.offsets[probe]) <= slot;
    const int num_begun = __popc(__ballot_sync(kAllLanes, begins));
    low += step * num_begun;
    high = min(high, low + step);
  }
  return low;
}

// What the block's table says of the slot with the index i. number: that among all slots.
template <class Params>
__device__ Slot SegmentSlot(const Params& p, const SlotTable& table, uint64_t number, int index) {
  int low = 0, high = index + 1;  // At most one segment begins with each slot.
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const uint64_t segment = table.first_segment + middle;
    const bool begins = segment < p.num_arrays && FirstSlotOf(segment, table.offsets[middle]) <= number;
    (begins ? low : high) = middle;
  }
  const uint64_t segment = table.first_segment + low;
  const uint64_t begin = table.offsets[low];
  const uint64_t num_items = table.offsets[low + 1] - begin;
  const uint64_t tile = number - FirstSlotOf(segment, begin);
  const uint64_t num_tiles = max(num_items + kTileItems - 1, uint64_t{kTileItems}) / kTileItems;
  if (tile >= num_tiles) return {};
  return {.begin = begin + tile * kTileItems,
          .array = static_cast<uint32_t>(segment),
          .tile = static_cast<uint32_t>(tile),
          .num_tiles = static_cast<uint32_t>(num_tiles),
          .num_items = NumValid(num_items, tile * kTileItems)};
}

// Sets the table's slots from first_slot on. Called by all threads of the block.
template <class Params>
__device__ void FillTable(const Params& p, uint64_t first_slot, SlotTable& table) {
  const int num_slots = p.slots_of_warp * kRowReduceWarps;
  if (p.offsets != nullptr) {
    if (WarpOfBlock() == 0) {
      const uint64_t segment = FindSegment(p, first_slot);
      if (LaneOfWarp() == 0) table.first_segment = segment;
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < num_slots + 2; i += static_cast<int>(blockDim.x)) {
      table.offsets[i] = p.offsets[min(table.first_segment + i, p.num_arrays)];
    }
    __syncthreads();
  }
  for (int i = static_cast<int>(threadIdx.x); i < num_slots; i += static_cast<int>(blockDim.x)) {
    const uint64_t number = first_slot + i;
    Slot slot;
    if (number < p.num_slots) slot = p.offsets == nullptr ? RowSlot(p, number) : SegmentSlot(p, table, number, i);
    table.slots[i] = slot;
  }
  __syncthreads();
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SLOT_TABLE_CUH_
