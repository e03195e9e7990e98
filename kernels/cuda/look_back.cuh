// Decoupled look-back: how the tiles of a single-pass algorithm learn what stands before them.
//
// Each tile has a state that only its own block writes: first its aggregate, later its inclusive prefix (everything up
// to and including the tile). A block that needs its exclusive prefix walks back over its predecessors, a window of 32
// at a time, adding aggregates until it meets an inclusive prefix.
//
// Progress: tile numbers are tickets, so every predecessor belongs to a block that has started; such a block publishes
// its aggregate without waiting for anybody, and tile 0 its inclusive prefix. No order of blockIdx is assumed.
// Memory order: a value is written before its status is released, and read after its status was acquired. A status only
// grows, and the two values have a word each, so a value that a reader may look at is never written again.
// Source: Merrill and Garland, NVR-2016-002.
#ifndef PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_
#define PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/atomic>

#include "kernels/cuda/warp_scan.cuh"

namespace prefixd::cuda {

enum TileStatus : uint32_t { kInvalid = 0, kAggregate = 1, kInclusivePrefix = 2 };

using DeviceAtomic = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_device>;

template <class T>
struct TileStates {
  uint32_t* ticket;  // The number of the next tile; the statuses follow it, so that one memset resets all.
  uint32_t* statuses;
  T* aggregates;
  T* inclusive_prefixes;

  static size_t ControlBytes(uint32_t num_tiles) { return (size_t{num_tiles} + 1) * sizeof(uint32_t); }
  static size_t AlignedControlBytes(uint32_t num_tiles) { return (ControlBytes(num_tiles) + 15) / 16 * 16; }
  static size_t SizeBytes(uint32_t num_tiles) {
    return AlignedControlBytes(num_tiles) + 2 * size_t{num_tiles} * sizeof(T);
  }

  // Lays the states of num_tiles tiles out in SizeBytes(num_tiles) of 16-byte aligned memory and resets them.
  static cudaError_t Create(std::byte* d_memory, uint32_t num_tiles, cudaStream_t stream, TileStates* states) {
    states->ticket = reinterpret_cast<uint32_t*>(d_memory);
    states->statuses = states->ticket + 1;
    states->aggregates = reinterpret_cast<T*>(d_memory + AlignedControlBytes(num_tiles));
    states->inclusive_prefixes = states->aggregates + num_tiles;
    return cudaMemsetAsync(d_memory, 0, ControlBytes(num_tiles), stream);
  }

  // The tile for this block. Called by one thread, once.
  __device__ uint32_t TakeTile() const { return DeviceAtomic(*ticket).fetch_add(1, ::cuda::memory_order_relaxed); }

  __device__ void Publish(uint32_t tile, TileStatus status, T value) const {
    (status == kAggregate ? aggregates : inclusive_prefixes)[tile] = value;
    DeviceAtomic(statuses[tile]).store(status, ::cuda::memory_order_release);
  }
};

// The combination of all tiles before `tile`, on every lane. Needs: one whole warp, tile > 0. Waits for predecessors.
template <class Operator, class T>
__device__ T LookBack(const TileStates<T>& states, uint32_t tile, T neutral) {
  T exclusive_prefix = neutral;
  // The window is the 32 tiles before window_end, the earliest on lane 0. Lanes before the first tile of all have
  // nothing to add; tile 0, on a later lane, ends every walk.
  for (int64_t window_end = tile;; window_end -= kWarpThreads) {
    const int64_t predecessor = window_end - kWarpThreads + LaneOfWarp();
    uint32_t status;
    uint32_t with_prefix;
    int first_needed;  // The last lane with an inclusive prefix; what is before it is contained in it.
    do {
      status = predecessor < 0 ? static_cast<uint32_t>(kInclusivePrefix)
                               : DeviceAtomic(states.statuses[predecessor]).load(::cuda::memory_order_acquire);
      with_prefix = __ballot_sync(kAllLanes, status == kInclusivePrefix);
      first_needed = with_prefix == 0 ? 0 : kWarpThreads - 1 - __clz(static_cast<int>(with_prefix));
    } while (__any_sync(kAllLanes, status == kInvalid && LaneOfWarp() >= first_needed));
    T value = neutral;
    if (predecessor >= 0 && LaneOfWarp() >= first_needed) {
      value = status == kInclusivePrefix ? states.inclusive_prefixes[predecessor] : states.aggregates[predecessor];
    }
    exclusive_prefix = Operator::Combine(WarpReduce<Operator>(value), exclusive_prefix);
    if (with_prefix != 0) break;
  }
  // Orders every lane's acquire before whatever any lane does next: a release by lane 0 then passes on all of them.
  __syncwarp();
  return exclusive_prefix;
}

// Publishes the tile and returns its exclusive prefix, on every lane. `start` stands before tile 0 and matters only
// there. Needs: one whole warp of the tile's block.
// After it, everything that the blocks of earlier tiles did before they published happens before what this warp does.
template <class Operator, class T>
__device__ T ChainTile(const TileStates<T>& states, uint32_t tile, T aggregate, T start, T neutral) {
  T exclusive_prefix = start;
  if (tile > 0) {
    if (LaneOfWarp() == 0) states.Publish(tile, kAggregate, aggregate);
    exclusive_prefix = LookBack<Operator>(states, tile, neutral);
  }
  if (LaneOfWarp() == 0) states.Publish(tile, kInclusivePrefix, Operator::Combine(exclusive_prefix, aggregate));
  return exclusive_prefix;
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_LOOK_BACK_CUH_
