// How the tiles of a single-pass algorithm learn what stands before them, without waiting for a chain and in an order
// that never depends on time.
//
// Every tile publishes its value, once. A block takes tiles by ticket; for each it reads the values of all tiles since
// the one before: groups of 32 are joined and folded, in order, onto what it knows already (kernels/NUMERICS.md). So
// every block computes every prefix by itself, from the same values in the same order; nothing is passed on.
//
// Progress: tile numbers are tickets, so every earlier tile belongs to a block that has started, and a block publishes
// its tile before it waits for others. No order of blockIdx and no number of resident blocks is assumed.
// Memory order: a state is one or two words that hold the value and the launch's epoch beside it, so a relaxed load
// that finds the epoch has found the value; nothing else is communicated. Reset: none. A state of an earlier launch has
// another epoch. The last block to leave begins the next epoch. Cost: a word or two of traffic within the L2 cache for
// each pair of block and tile. Source: Merrill and Garland, NVR-2016-002, for the single pass; the fold from a known
// group is ours.
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

// The states of the tiles of one launch.
template <class T>
struct TileStates {
  static constexpr int kWords = sizeof(T) <= 4 ? 1 : 2;

  TileControl* control;
  uint64_t* words;
  uint64_t num_words;  // That there is memory for: what a new round of epochs has to clear.

  // The next tile. Called by one thread of a block.
  __device__ uint32_t TakeTile() const {
    return DeviceAtomic32(control->ticket).fetch_add(1, ::cuda::memory_order_relaxed);
  }

  // What marks this launch's states. It does not change before the last block has left.
  __device__ uint32_t Epoch() const { return DeviceAtomic32(control->epoch).load(::cuda::memory_order_relaxed) + 1; }

  // Called by one thread.
  __device__ void Publish(uint32_t tile, uint32_t epoch, T value) const {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const uint64_t word = uint64_t{epoch} << 32 | (bits >> 32 * w & 0xffffffffu);
      DeviceAtomic64(words[uint64_t{tile} * kWords + w]).store(word, ::cuda::memory_order_relaxed);
    }
  }

  // Whether the tile was published; if so, with its value.
  __device__ bool Read(uint32_t tile, uint32_t epoch, T* value) const {
    uint64_t bits = 0;
    bool published = true;
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const uint64_t word = DeviceAtomic64(words[uint64_t{tile} * kWords + w]).load(::cuda::memory_order_relaxed);
      published = published && word >> 32 == epoch;
      bits |= (word & 0xffffffffu) << 32 * w;
    }
    memcpy(value, &bits, sizeof(T));
    return published;
  }

  // The block will take no more tiles and read no more states. Called by one thread of each block, once.
  __device__ void Leave() const {
    const uint32_t before = DeviceAtomic32(control->blocks_left).fetch_add(1, ::cuda::memory_order_acq_rel);
    if (before != gridDim.x - 1) return;
    // The stream orders what follows before the next launch.
    control->ticket = 0;
    control->blocks_left = 0;
    if (++control->epoch == 0xffffffffu) {  // Epoch() would come to marks that are still in memory.
      for (uint64_t i = 0; i < num_words; ++i) words[i] = 0;
      control->epoch = 0;
    }
  }
};

template <class T>
cudaError_t MakeStates(uint32_t num_tiles, LaunchContext* context, TileStates<T>* states) {
  void* d_words = nullptr;
  const cudaError_t error =
      context->states.Get(context->stream, uint64_t{num_tiles} * TileStates<T>::kWords * sizeof(uint64_t), &d_words);
  *states = {.control = context->d_control,
             .words = static_cast<uint64_t*>(d_words),
             .num_words = context->states.size_bytes() / sizeof(uint64_t)};
  return error;
}

// What stands before a tile: array op (group op x) for an x within it.
template <class T>
struct TilePrefix {
  T array;          // start, and the groups before the tile's.
  T group;          // The tree of the tiles before it in its group; neutral for the first.
  T previous_tile;  // The value of the group up to the end of the tile before it; neutral for the first.
};

// One block's knowledge of the groups so far. Held by one whole warp, the same on each lane.
template <class Operator, class T>
class GroupFold {
 public:
  __device__ GroupFold(const TileStates<T>& states, uint32_t epoch, T start, T neutral)
      : states_(states), epoch_(epoch), array_(start), neutral_(neutral) {}

  // Waits for all tiles before this one. Needs: no earlier call with a later tile.
  __device__ TilePrefix<T> Before(uint32_t tile) {
    const uint32_t group = tile / kJoinSlots;
    while (next_group_ < group) {
      // Several groups at once, so that their loads are in flight together.
      T values[kGroupsAtOnce];
#pragma unroll
      for (int i = 0; i < kGroupsAtOnce; ++i) values[i] = neutral_;
      uint32_t missing = 0;
#pragma unroll
      for (int i = 0; i < kGroupsAtOnce; ++i) missing |= next_group_ + i < group ? 1u << i : 0;
      while (missing != 0) {
#pragma unroll
        for (int i = 0; i < kGroupsAtOnce; ++i) {
          if ((missing >> i & 1) != 0 && ReadTile(next_group_ + i, &values[i])) missing &= ~(1u << i);
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kGroupsAtOnce; ++i) {
        const T joined = WarpJoin<Operator>(values[i], neutral_, kJoinSlots - 1);
        if (next_group_ + i < group) array_ = Operator::Combine(array_, joined);
      }
      next_group_ = min(next_group_ + kGroupsAtOnce, group);
    }
    const int num_before = static_cast<int>(tile % kJoinSlots);
    T value = neutral_;
    if (LaneOfWarp() < num_before) {
      while (!ReadTile(group, &value)) {
      }
    }
    __syncwarp();
    const WarpJoined<T> joined = WarpJoins<Operator>(value, neutral_);
    if (num_before == 0) return {array_, neutral_, neutral_};
    // The tree of the tiles before stands before lane num_before, and beyond the last lane for a 33rd tile, which there
    // is not; their join is lane num_before - 1's.
    return {array_, ShuffleFrom(joined.before, num_before), ShuffleFrom(joined.value, num_before - 1)};
  }

 private:
  static constexpr int kGroupsAtOnce = 4;

  __device__ bool ReadTile(uint32_t group, T* value) const {
    return states_.Read(group * kJoinSlots + LaneOfWarp(), epoch_, value);
  }

  const TileStates<T>& states_;
  const uint32_t epoch_;
  T array_;
  const T neutral_;
  uint32_t next_group_ = 0;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_
