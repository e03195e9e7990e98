// Ordered scans and reductions within a warp (shuffles) and a block (one shared value per warp).
//
// Order: an operator always sees the earlier items on its left, so operators need not commute.
// Item is what the operator combines: an element, or a struct with its own ShuffleUp and ShuffleFrom overloads.
#ifndef PREFIXD_KERNELS_CUDA_WARP_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_WARP_SCAN_CUH_

#include <cstdint>

namespace prefixd::cuda {

inline constexpr int kWarpThreads = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;

inline __device__ int LaneOfWarp() { return static_cast<int>(threadIdx.x % kWarpThreads); }
inline __device__ int WarpOfBlock() { return static_cast<int>(threadIdx.x / kWarpThreads); }

template <class T>
__device__ T ShuffleUp(T v, int offset) {
  return __shfl_up_sync(kAllLanes, v, offset);
}
template <class T>
__device__ T ShuffleFrom(T v, int lane) {
  return __shfl_sync(kAllLanes, v, lane);
}

// Kogge and Stone's scan: log2(32) steps. Needs all 32 lanes.
template <class Operator, class Item>
__device__ Item WarpInclusiveScan(Item item) {
#pragma unroll
  for (int offset = 1; offset < kWarpThreads; offset *= 2) {
    const Item left = ShuffleUp(item, offset);
    if (LaneOfWarp() >= offset) item = Operator::Combine(left, item);
  }
  return item;
}

// The warp's aggregate, on every lane.
template <class Operator, class Item>
__device__ Item WarpReduce(Item item) {
  return ShuffleFrom(WarpInclusiveScan<Operator>(item), kWarpThreads - 1);
}

template <class Item>
struct BlockPrefix {
  Item exclusive;  // Of the threads before this one; `neutral` for thread 0.
  Item aggregate;  // Of all threads, the same on each.
};

// Scan over the threads of a block.
// Needs: all threads; s_warp_aggregates not in use since the last barrier. Contains one barrier.
template <class Operator, int kWarps, class Item>
__device__ BlockPrefix<Item> BlockExclusiveScan(Item item, Item neutral, Item (&s_warp_aggregates)[kWarps]) {
  const Item inclusive = WarpInclusiveScan<Operator>(item);
  if (LaneOfWarp() == kWarpThreads - 1) s_warp_aggregates[WarpOfBlock()] = inclusive;
  __syncthreads();
  Item warp_prefix = neutral;
  Item aggregate = neutral;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp == WarpOfBlock()) warp_prefix = aggregate;
    aggregate = Operator::Combine(aggregate, s_warp_aggregates[warp]);
  }
  const Item left = ShuffleUp(inclusive, 1);
  return {LaneOfWarp() == 0 ? warp_prefix : Operator::Combine(warp_prefix, left), aggregate};
}

// The block's aggregate, on every thread. Needs and barrier as BlockExclusiveScan.
template <class Operator, int kWarps, class Item>
__device__ Item BlockReduce(Item item, Item neutral, Item (&s_warp_aggregates)[kWarps]) {
  const Item inclusive = WarpInclusiveScan<Operator>(item);
  if (LaneOfWarp() == kWarpThreads - 1) s_warp_aggregates[WarpOfBlock()] = inclusive;
  __syncthreads();
  Item aggregate = neutral;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) aggregate = Operator::Combine(aggregate, s_warp_aggregates[warp]);
  return aggregate;
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_WARP_SCAN_CUH_
