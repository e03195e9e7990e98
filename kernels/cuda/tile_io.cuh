// How a block moves its tile: coalesced between global and shared memory, and from there to each thread its own run
// of consecutive items.
//
// Memory is visited striped (thread t takes items t, t + 256, ...), so that a warp touches neighbours; an ordered scan
// wants the items blocked (thread t holds items t*k .. t*k + k-1). Shared memory is where one turns into the other.
#ifndef PREFIXD_KERNELS_CUDA_TILE_IO_CUH_
#define PREFIXD_KERNELS_CUDA_TILE_IO_CUH_

#include <cstdint>

namespace prefixd::cuda {

// About 15 KiB of items a tile. items_per_thread is odd: then the runs of a warp's threads start in different banks,
// and blocked access to shared memory has no conflicts.
template <class T>
struct TileShape {
  static constexpr int kThreads = 256;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kItemsPerThread = sizeof(T) == 8 ? 7 : 15;
  static constexpr int kTileItems = kThreads * kItemsPerThread;
};

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
template <class T>
__device__ int NumValid(uint64_t num_items, uint64_t tile_begin) {
  const uint64_t rest = num_items - tile_begin;
  return rest < TileShape<T>::kTileItems ? static_cast<int>(rest) : TileShape<T>::kTileItems;
}

// Global to shared memory; the rest of a partial tile becomes `filler`. Needs a barrier before s_items is read.
// All loads are issued before the first is used: memory is kept busy by bytes in flight.
template <class T>
__device__ void LoadTile(TileView<const T> view, int num_valid, T filler, T* s_items) {
  using Shape = TileShape<T>;
  T items[Shape::kItemsPerThread];
#pragma unroll
  for (int i = 0; i < Shape::kItemsPerThread; ++i) {
    const int item = i * Shape::kThreads + static_cast<int>(threadIdx.x);
    items[i] = item < num_valid ? view[item] : filler;
  }
#pragma unroll
  for (int i = 0; i < Shape::kItemsPerThread; ++i) {
    s_items[i * Shape::kThreads + threadIdx.x] = items[i];
  }
}

// Shared to global memory. Needs a barrier after s_items was written.
template <class T>
__device__ void StoreTile(TileView<T> view, int num_valid, const T* s_items) {
  using Shape = TileShape<T>;
#pragma unroll
  for (int i = 0; i < Shape::kItemsPerThread; ++i) {
    const int item = i * Shape::kThreads + static_cast<int>(threadIdx.x);
    if (item < num_valid) view[item] = s_items[item];
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_TILE_IO_CUH_
