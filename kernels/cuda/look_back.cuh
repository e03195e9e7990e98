// Look-back: how the tiles of a single-pass algorithm learn what stands before them. No tile waits for a chain of
// others, and the order in which values combine never depends on time.
//
// Every tile publishes its value once. A block takes tiles by ticket. For each of its tiles it reads the values of all
// tiles since its previous one, joins them in groups of 32, and folds the groups in order onto the prefix that it knows
// (kernels/NUMERICS.md). So every block computes every prefix by itself, from the same values in the same order.
//
// Progress: tile numbers are tickets, so every earlier tile belongs to a block that has started. A block publishes a
// tile without waiting for later ones. So the first unpublished tile waits for no other. No order of blockIdx and no
// number of resident blocks is assumed. Memory order: a state is some words, each with 32 bits of the value and the
// launch's epoch beside them, so a relaxed load that finds the epoch has found the value; nothing else is communicated.
// Reset: none. A state of an earlier launch has another epoch. The last block to leave begins the next epoch. Cost: a
// word or two of traffic within the L2 cache for each pair of block and tile. Source: Merrill and Garland 2016 for the
// single pass; the fold from a known group is ours.
#ifndef PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_
#define PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <cuda/atomic>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

using DeviceAtomic32 = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_device>;
using DeviceAtomic64 = ::cuda::atomic_ref<uint64_t, ::cuda::thread_scope_device>;

template <class Item>
inline constexpr int kStateWords = sizeof(Item) / sizeof(uint32_t);

// A tile's state as it was read: in each word the epoch above, and 32 bits of the value below.
template <class Item>
struct StateWords {
  uint64_t words[kStateWords<Item>];

  // Whether the tile was published; if so, with its value.
  __device__ bool Get(uint32_t epoch, Item* value) const {
    uint32_t bits[kStateWords<Item>];
#pragma unroll
    for (int w = 0; w < kStateWords<Item>; ++w) {
      if (words[w] >> 32 != epoch) return false;
      bits[w] = static_cast<uint32_t>(words[w]);
    }
    memcpy(value, bits, sizeof(Item));
    return true;
  }
};

// The states of the tiles of one launch.
struct TileStates {
  TileControl* control;
  uint64_t* words;
  uint64_t num_words;  // How many words there is memory for. All are cleared when epochs start over.

  // The next tile. Called by one thread of a block.
  __device__ uint32_t TakeTile() const {
    return DeviceAtomic32(control->ticket).fetch_add(1, ::cuda::memory_order_relaxed);
  }

  // The epoch that marks this launch's states. It does not change before the last block has left.
  __device__ uint32_t Epoch() const { return DeviceAtomic32(control->epoch).load(::cuda::memory_order_relaxed) + 1; }

  // Called by one thread.
  template <class Item>
  __device__ void Publish(uint32_t tile, uint32_t epoch, Item value) const {
    uint32_t bits[kStateWords<Item>];
    memcpy(bits, &value, sizeof(Item));
#pragma unroll
    for (int w = 0; w < kStateWords<Item>; ++w) {
      const uint64_t word = uint64_t{epoch} << 32 | bits[w];
      DeviceAtomic64(words[uint64_t{tile} * kStateWords<Item> + w]).store(word, ::cuda::memory_order_relaxed);
    }
  }

  // Needs: the tile belongs to this launch.
  template <class Item>
  __device__ StateWords<Item> Load(uint32_t tile) const {
    StateWords<Item> loaded;
#pragma unroll
    for (int w = 0; w < kStateWords<Item>; ++w) {
      loaded.words[w] =
          DeviceAtomic64(words[uint64_t{tile} * kStateWords<Item> + w]).load(::cuda::memory_order_relaxed);
    }
    return loaded;
  }

  // A Leave() for blocks that share nothing but a count: the last block to leave writes the sum of all counts. Called
  // by one thread of each block, once.
  __device__ void LeaveCounting(uint64_t count, uint64_t* sum) const {
    DeviceAtomic64(control->sum).fetch_add(count, ::cuda::memory_order_relaxed);
    const uint32_t before = DeviceAtomic32(control->blocks_left).fetch_add(1, ::cuda::memory_order_acq_rel);
    if (before != gridDim.x - 1) return;
    *sum = control->sum;
    control->sum = 0;
    control->blocks_left = 0;
  }

  // Says that the block takes no more tiles and reads no more states. Called by one thread of each block, once.
  __device__ void Leave() const {
    const uint32_t before = DeviceAtomic32(control->blocks_left).fetch_add(1, ::cuda::memory_order_acq_rel);
    if (before != gridDim.x - 1) return;
    // The stream runs the next launch after these writes.
    control->sum = 0;
    control->ticket = 0;
    control->blocks_left = 0;
    if (++control->epoch == 0xffffffffu) {  // The next epochs repeat old ones, whose marks are still in memory.
      for (uint64_t i = 0; i < num_words; ++i) words[i] = 0;
      control->epoch = 0;
    }
  }
};

// Sets num_tiles to the number of tickets, and states to memory for ticket_states Items for each ticket.
template <class Item, class Params>
cudaError_t PrepareTickets(uint64_t ticket_items, int ticket_states, LaunchContext* context, Params* params) {
  cudaError_t error = CountTiles(params->num_items, ticket_items, &params->num_tiles);
  if (error != cudaSuccess) return error;
  const uint64_t num_words = uint64_t{params->num_tiles} * ticket_states * kStateWords<Item>;
  void* d_words = nullptr;
  error = context->states.Get(context->stream, num_words * sizeof(uint64_t), &d_words);
  params->states = {.control = context->d_control,
                    .words = static_cast<uint64_t*>(d_words),
                    .num_words = context->states.size_bytes() / sizeof(uint64_t)};
  return error;
}

// What stands before a tile. If x is the tile's value up to an item, the array's value is array op (group op x).
template <class Item, class Array = Item>
struct TilePrefix {
  Array array;         // The start, joined with all groups before the tile's group.
  Item group;          // The tree of the tiles before it in its group; neutral for the group's first tile.
  Item previous_tile;  // The value of the group up to the tile before it; neutral for the group's first tile.
};

// The look-back of a team of warps: what it knows of the tiles so far, the same on every thread. Each warp waits for
// one group at a time. The code is short because on small arrays fetching instructions takes longer than running loops;
// all but the fold. Array: the type of the value before a group, if it is not the operator's Item.
template <class Operator, int kTeamWarps, class Array = typename Operator::Item>
class GroupFold {
 public:
  using Item = typename Operator::Item;

  struct Shared {
    struct Round {
      Item groups[kTeamWarps];
      WarpJoined<Item> tiles[kJoinSlots];  // The joined tiles of the group that was asked for.
    };
    Round rounds[2];  // Two, used in turn, so that one barrier a round is enough.
  };

  __device__ GroupFold(const TileStates& states, uint32_t epoch, Array start, Item neutral, int warp_of_team, Shared& s)
      : states_(states), epoch_(epoch), neutral_(neutral), warp_(warp_of_team), s_(s), array_(start) {}

  // Waits for all groups before `group`, and for its first num_tiles tiles, at most 31.
  // sync(): a barrier of the team's threads; called at least once.
  // observe(tile, value): called for every tile by one of the threads. A thread sees its tiles in order, some more than
  // once. Needs: no earlier call asked for a later group.
  template <class Sync, class Observe>
  __device__ void WaitFor(uint32_t group, int num_tiles, Sync&& sync, Observe&& observe) {
    for (;;) {
      round_ ^= 1;
      const uint32_t mine = next_group_ + warp_;
      if (mine <= group) {
        const uint32_t tile = mine * kJoinSlots + LaneOfWarp();
        Item value = neutral_;
        if (mine < group || LaneOfWarp() < num_tiles) {
          while (!states_.Load<Item>(tile).Get(epoch_, &value)) {
          }
          observe(tile, value);
        }
        __syncwarp();
        const WarpJoined<Item> joined = WarpJoins<Operator>(value, neutral_);
        if (mine == group) s_.rounds[round_].tiles[LaneOfWarp()] = joined;
        if (mine < group && LaneOfWarp() == kWarpThreads - 1) s_.rounds[round_].groups[warp_] = joined.value;
      }
      sync();
      const uint32_t num_groups = min(group - next_group_, uint32_t{kTeamWarps});
      // Values are read several at a time. Read one by one they took half of a round: f16 to f32 went at 0.88 of the
      // copy in place of 0.93 (H200).
      constexpr int kAtOnce = kTeamWarps < 16 ? kTeamWarps : 4;
#pragma unroll 1
      for (uint32_t first = 0; first < num_groups; first += kAtOnce) {
        Item groups[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) groups[i] = s_.rounds[round_].groups[first + i];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (first + i < num_groups) array_ = Operator::Combine(array_, groups[i]);
        }
      }
      next_group_ += num_groups;
      if (num_groups < kTeamWarps) return;
    }
  }
  template <class Sync>
  __device__ void WaitFor(uint32_t group, int num_tiles, Sync&& sync) {
    WaitFor(group, num_tiles, sync, [](uint32_t, Item) {});
  }

  // Waits for all num_tiles tiles. Returns the start, joined with all of them.
  template <class Sync, class Observe>
  __device__ Array WaitForAll(uint32_t num_tiles, Sync&& sync, Observe&& observe) {
    const auto rest = static_cast<int>(num_tiles % kJoinSlots);
    WaitFor(num_tiles / kJoinSlots, rest, sync, observe);
    return rest == 0 ? array_ : Operator::Combine(array_, Prefix(rest).previous_tile);
  }

  // What stands before tile `slot` of the group that was asked for; slot is at most num_tiles.
  __device__ TilePrefix<Item, Array> Prefix(int slot) const {
    if (slot == 0) return {array_, neutral_, neutral_};
    return {array_, s_.rounds[round_].tiles[slot].before, s_.rounds[round_].tiles[slot - 1].value};
  }

 private:
  const TileStates& states_;
  const uint32_t epoch_;
  const Item neutral_;
  const int warp_;
  Shared& s_;
  int round_ = 0;
  uint32_t next_group_ = 0;
  Array array_;  // The start, joined with the groups before next_group_.
};

// The look-back of one warp, for operators whose order is free: it waits for kGroups groups at a time.
template <class Operator, int kGroups, class Array = typename Operator::Item>
class WarpFold {
 public:
  using Item = typename Operator::Item;
  static_assert(Operator::kAnyOrder);

  __device__ WarpFold(const TileStates& states, uint32_t epoch, Array start, Item neutral)
      : states_(states), epoch_(epoch), neutral_(neutral), array_(start), rest_(neutral) {}

  // Waits for the first num_tiles tiles. Called by all lanes. Needs: no earlier call asked for more tiles.
  __device__ void WaitFor(uint32_t num_tiles) {
    for (;;) {
      const uint32_t first_tile = next_group_ * kJoinSlots;
      rest_ = neutral_;
      if (first_tile == num_tiles) return;
      const uint32_t tile = first_tile + LaneOfWarp();
      Item values[kGroups];
      for (bool found = false; !found;) {
        // The loads have no conditions, so all are in flight together. This decides the speed of the whole kernel.
        StateWords<Item> words[kGroups];
#pragma unroll
        for (int g = 0; g < kGroups; ++g) words[g] = states_.Load<Item>(min(tile + g * kJoinSlots, num_tiles - 1));
        found = true;
#pragma unroll
        for (int g = 0; g < kGroups; ++g) found &= words[g].Get(epoch_, &values[g]);
      }
      __syncwarp();
      const int num_groups = static_cast<int>(min((num_tiles - first_tile) / kJoinSlots, uint32_t{kGroups}));
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const Item total = WarpTotal<Operator>(tile + g * kJoinSlots < num_tiles ? values[g] : neutral_);
        if (g < num_groups) array_ = Operator::Combine(array_, total);
        if (g == num_groups) rest_ = total;
      }
      next_group_ += num_groups;
      if (num_groups < kGroups) return;
    }
  }

  // What stands before tile num_tiles of the last WaitFor.
  __device__ Array Prefix() const { return Operator::Combine(array_, rest_); }

 private:
  const TileStates& states_;
  const uint32_t epoch_;
  const Item neutral_;
  uint32_t next_group_ = 0;
  Array array_;  // The start, joined with the groups before next_group_.
  Item rest_;    // The tiles of group next_group_ that were waited for.
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_
