// What tiles of the same array tell each other, where arrays of any lengths follow each other (array_ranges.cuh): their
// values, for a scan with what stands before a tile, for a reduce with the value of the whole array.
// Progress and memory order: as in look_back.cuh.
#ifndef PREFIXD_KERNELS_CUDA_ARRAY_STATES_CUH_
#define PREFIXD_KERNELS_CUDA_ARRAY_STATES_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// The states of an array's tiles, which take memory for the elements there are, not for each array. Between two
// multiples of kTileItems begins at most one tile of an array that began before, at most one array of several tiles,
// and at most one group.
class ArrayStates {
 public:
  __device__ ArrayStates(const TileStates& states, uint32_t epoch, uint64_t array_begin)
      : states_(states), epoch_(epoch), first_(array_begin / kTileItems) {}
  static uint64_t Count(uint64_t num_items) { return 3 * (num_items / kTileItems + 1); }

  // The value of a tile. Called by one thread.
  template <class Item>
  __device__ void Publish(uint64_t tile, Item value) const {
    states_.Publish(TileState(tile), epoch_, value);
  }

  // What stands before a tile of the array. tile_value: its own, needed if it is whole. The last tile of a group has to
  // ask, for others wait for what it finds. Called by a warp.
  template <class Operator, class Item>
  __device__ TilePrefix<Item> LookBack(uint64_t tile, Item tile_value, Item start, Item neutral) const {
    const uint64_t group = tile / kJoinSlots;
    const auto slot = static_cast<int>(tile % kJoinSlots);
    const WarpJoined<Item> tiles =
        WarpJoins<Operator>(Await(TileState(group * kJoinSlots + LaneOfWarp()), LaneOfWarp() < slot, neutral), neutral);
    const Item before = slot == 0 ? neutral : ShuffleFrom(tiles.before, slot);
    const Item previous = slot == 0 ? neutral : ShuffleFrom(tiles.value, slot - 1);
    if (slot == kJoinSlots - 1 && LaneOfWarp() == 0) {
      states_.Publish(GroupState(group), epoch_, Operator::Combine(before, tile_value));
    }
    Item array = start;
    if (group > 0) {
      const uint64_t known = FindKnown(group, start, &array);
      const auto num_groups = static_cast<int>(group - known);
      const Item value = Await(GroupState(known + LaneOfWarp()), LaneOfWarp() < num_groups, neutral);
      for (int g = 0; g < num_groups; ++g) array = Operator::Combine(array, ShuffleFrom(value, g));
      if (num_groups > 0 && LaneOfWarp() == 0) states_.Publish(PrefixState(group), epoch_, array);
    }
    return {array, before, previous};
  }

  // Where only the value of the whole array is wanted: the value of a tile that is not the last, and if it is the last
  // of its group, that of the group. Called by a warp.
  template <class Operator, class Item>
  __device__ void PublishForFold(uint64_t tile, Item value, Item neutral) const {
    const uint64_t group = tile / kJoinSlots;
    if (tile % kJoinSlots != kJoinSlots - 1) {
      if (LaneOfWarp() == 0) Publish(tile, value);
      return;
    }
    const Item before =
        WarpTree<Operator>(Await(TileState(group * kJoinSlots + LaneOfWarp()), LaneOfWarp() < kJoinSlots - 1, neutral));
    if (LaneOfWarp() == 0) states_.Publish(GroupState(group), epoch_, Operator::Combine(before, value));
  }
  // The value of the array. value: that of its last tile. Called by a warp.
  template <class Operator, class Item>
  __device__ Item Fold(uint64_t tile, Item value, Item start, Item neutral) const {
    const uint64_t num_groups = tile / kJoinSlots;
    const auto slot = static_cast<int>(tile % kJoinSlots);
    const Item before =
        WarpTree<Operator>(Await(TileState(num_groups * kJoinSlots + LaneOfWarp()), LaneOfWarp() < slot, neutral));
    Item array = start;
    for (uint64_t first = 0; first < num_groups; first += kWarpThreads) {
      const uint64_t group = first + LaneOfWarp();
      const Item groups = Await(GroupState(group), group < num_groups, neutral);
#pragma unroll
      for (int g = 0; g < kWarpThreads; ++g) array = Operator::Combine(array, ShuffleFrom(groups, g));
    }
    return Operator::Combine(array, Operator::Combine(before, value));
  }

 private:
  // The last group up to `group`, and not before the 31 before it, before which somebody knows the value of the array.
  template <class Item>
  __device__ uint64_t FindKnown(uint64_t group, Item start, Item* array) const {
    const uint64_t back = LaneOfWarp();
    for (;;) {
      Item value = start;
      bool is_known = back == group;
      if (back < group) is_known = states_.Load<Item>(PrefixState(group - back)).Get(epoch_, &value);
      const uint32_t lanes = __ballot_sync(kAllLanes, is_known);
      if (lanes == 0) continue;
      const int nearest = __ffs(static_cast<int>(lanes)) - 1;
      *array = ShuffleFrom(value, nearest);
      return group - nearest;
    }
  }
  __device__ uint32_t TileState(uint64_t tile) const {
    return static_cast<uint32_t>(3 * (first_ + tile) + (tile == 0 ? 1 : 0));
  }
  // Where the value before a group is that is not the first: beside its first tile.
  __device__ uint32_t PrefixState(uint64_t group) const {
    return static_cast<uint32_t>(3 * (first_ + group * kJoinSlots) + 2);
  }
  // Where the value of a group is: beside its last tile.
  __device__ uint32_t GroupState(uint64_t group) const {
    return static_cast<uint32_t>(3 * (first_ + group * kJoinSlots + kJoinSlots - 1) + 2);
  }
  // Waits for a state in the lanes that want one; the others get neutral. Called by a warp.
  template <class Item>
  __device__ Item Await(uint32_t state, bool wants, Item neutral) const {
    Item value = neutral;
    if (wants) {
      while (!states_.Load<Item>(state).Get(epoch_, &value)) {
      }
    }
    __syncwarp();
    return value;
  }

  const TileStates& states_;
  const uint32_t epoch_;
  const uint64_t first_;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ARRAY_STATES_CUH_
