// A tile in registers: how a block's threads hold, load and store the runs, leaves and tiles of kernels/NUMERICS.md.
//
// A warp holds kLeavesPerWarp leaves, a lane one run of each. A leaf is consecutive in memory and so is a run, so a
// warp loads a leaf with one access of 16 bytes a lane (two for 8-byte items), and no shared memory is needed in
// between.
#ifndef PREFIXD_KERNELS_CUDA_TILE_IO_CUH_
#define PREFIXD_KERNELS_CUDA_TILE_IO_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

struct TileShape {
  static constexpr int kThreads = 1024;
  static constexpr int kWarps = kThreads / kWarpThreads;
  static constexpr int kLeavesPerWarp = kJoinSlots / kWarps;
};

// Where the calling thread's runs begin within the tile.
inline __device__ int LeafOfTile(int row) { return WarpOfBlock() * TileShape::kLeavesPerWarp + row; }
inline __device__ int FirstItemOfRun(int row) { return LeafOfTile(row) * kLeafItems + LaneOfWarp() * kRunItems; }

// Items tile_begin .. num_items - 1 of an array as a scan visits them: forwards, or (reverse) from the last element to
// the first. Item i of the view is first[step * i].
template <class T>
struct TileView {
  T* first;
  int64_t step;

  __device__ TileView(T* array, uint64_t num_items, uint64_t tile_begin, bool reverse)
      : first(array + (reverse ? num_items - 1 - tile_begin : tile_begin)), step(reverse ? -1 : 1) {}
  __device__ T& operator[](int item) const { return first[step * item]; }
};

// How many of the tile's items exist.
inline __device__ int NumValid(uint64_t num_items, uint64_t tile_begin) {
  const uint64_t rest = num_items - tile_begin;
  return rest < kTileItems ? static_cast<int>(rest) : kTileItems;
}

// Items that are moved together, in accesses of up to 16 bytes.
template <class T, int kItems>
struct alignas(sizeof(T) * kItems < 16 ? sizeof(T) * kItems : 16) Vector {
  T items[kItems];
};
template <class T>
using Run = Vector<T, kRunItems>;

// Whether runs of this array are aligned as Run is.
template <class T>
bool HasAlignedRuns(const T* array) {
  return reinterpret_cast<uintptr_t>(array) % alignof(Run<T>) == 0;
}

template <class T>
using ThreadRuns = Run<T>[TileShape::kLeavesPerWarp];

// Whether all items of the leaf exist and can be moved run by run. The same for all lanes of a warp.
inline __device__ bool IsWholeLeaf(int leaf, int num_valid, bool aligned) {
  return aligned && (leaf + 1) * kLeafItems <= num_valid;
}

// Global memory to registers. Items past the end become `filler`. aligned: the view goes forwards and HasAlignedRuns.
// All loads are issued before the first is used: memory is kept busy by bytes in flight.
template <class T>
__device__ void LoadTile(TileView<const T> view, int num_valid, T filler, bool aligned, ThreadRuns<T>& runs) {
#pragma unroll
  for (int row = 0; row < TileShape::kLeavesPerWarp; ++row) {
    if (IsWholeLeaf(LeafOfTile(row), num_valid, aligned)) {
      runs[row] = *reinterpret_cast<const Run<T>*>(view.first + FirstItemOfRun(row));
      continue;
    }
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      const int item = FirstItemOfRun(row) + i;
      runs[row].items[i] = item < num_valid ? view[item] : filler;
    }
  }
}

template <class T>
__device__ void StoreTile(TileView<T> view, int num_valid, bool aligned, const ThreadRuns<T>& runs) {
#pragma unroll
  for (int row = 0; row < TileShape::kLeavesPerWarp; ++row) {
    if (IsWholeLeaf(LeafOfTile(row), num_valid, aligned)) {
      *reinterpret_cast<Run<T>*>(view.first + FirstItemOfRun(row)) = runs[row];
      continue;
    }
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      const int item = FirstItemOfRun(row) + i;
      if (item < num_valid) view[item] = runs[row].items[i];
    }
  }
}

// The last slot of a join that holds num_valid items, slot_items in each slot. 0 if there are no items.
inline __device__ int LastSlot(int num_valid, int slot_items) {
  return num_valid <= 0 ? 0 : min((num_valid - 1) / slot_items, kJoinSlots - 1);
}

// Writes an item of an array of items of so many bytes.
inline __device__ void StoreBits(unsigned char* items, int item_bytes, uint64_t index, uint64_t bits) {
  unsigned char* const to = items + index * item_bytes;
  switch (item_bytes) {
    case 1:
      *to = static_cast<unsigned char>(bits);
      break;
    case 2:
      *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(bits);
      break;
    case 4:
      *reinterpret_cast<uint32_t*>(to) = static_cast<uint32_t>(bits);
      break;
    default:
      *reinterpret_cast<uint64_t*>(to) = bits;
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_TILE_IO_CUH_
