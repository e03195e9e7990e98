// Ordered trees and joins over the lanes of a warp, as kernels/NUMERICS.md defines them: lane l holds slot l.
//
// Order: an operator always sees the earlier slot on its left, so operators need not commute. A slot that is absent
// holds the operator's neutral item, which changes no bit. Item is what the operator combines: an element, or a struct
// with its own ShuffleFrom overload. All functions need all 32 lanes.
#ifndef PREFIXD_KERNELS_CUDA_WARP_JOIN_CUH_
#define PREFIXD_KERNELS_CUDA_WARP_JOIN_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/log_add_exp.h"
#include "kernels/wide_sum.h"

namespace prefixd::cuda {

inline constexpr int kWarpThreads = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;
static_assert(kJoinSlots == kWarpThreads);

inline __device__ int LaneOfWarp() { return static_cast<int>(threadIdx.x % kWarpThreads); }
inline __device__ int WarpOfBlock() { return static_cast<int>(threadIdx.x / kWarpThreads); }

template <class T>
__device__ T ShuffleFrom(T v, int lane) {
  return __shfl_sync(kAllLanes, v, lane);
}

inline __device__ Compensated<double> ShuffleFrom(Compensated<double> v, int lane) {
  return {ShuffleFrom(v.sum, lane), ShuffleFrom(v.error, lane)};
}
template <class T>
__device__ Scaled<T> ShuffleFrom(Scaled<T> v, int lane) {
  return {ShuffleFrom(v.sum, lane), ShuffleFrom(v.exponent, lane)};
}

// Joins two neighbouring parts. Each lane says which of them stands on the left.
template <class Operator, class Item>
__device__ Item CombineNeighbours(bool mine_is_right, Item mine, Item other) {
  if constexpr (Operator::kAnyOrder) return Operator::Combine(mine, other);
  return mine_is_right ? Operator::Combine(other, mine) : Operator::Combine(mine, other);
}

// The tree of all lanes, on every lane: five steps, each of which joins neighbouring blocks of lanes.
template <class Operator, class Item>
__device__ Item WarpTree(Item item) {
  const int lane = LaneOfWarp();
#pragma unroll
  for (int width = 1; width < kWarpThreads; width *= 2) {
    const Item other = ShuffleFrom(item, lane ^ width);
    item = CombineNeighbours<Operator>((lane & width) != 0, item, other);
  }
  return item;
}

// The trees of all lanes for several rows at once: lane l gets the tree of rows[l % kRows]. kRows is a power of two. In
// each of the first steps neighbours share the rows between them, so all rows together cost kRows + 4 - log2(kRows)
// shuffles. Destroys rows.
template <class Operator, int kRows, class Item>
__device__ Item WarpTreeOfRows(Item (&rows)[kRows]) {
  static_assert((kRows & (kRows - 1)) == 0 && kRows <= kWarpThreads);
  const int lane = LaneOfWarp();
#pragma unroll
  for (int width = 1; width < kWarpThreads; width *= 2) {
    const bool is_right = (lane & width) != 0;
    const int kept = kRows / width / 2;
    if (kept == 0) {
      const Item other = ShuffleFrom(rows[0], lane ^ width);
      rows[0] = CombineNeighbours<Operator>(is_right, rows[0], other);
      continue;
    }
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      const Item mine = is_right ? rows[2 * i + 1] : rows[2 * i];
      const Item other = ShuffleFrom(is_right ? rows[2 * i] : rows[2 * i + 1], lane ^ width);
      rows[i] = CombineNeighbours<Operator>(is_right, mine, other);
    }
  }
  return rows[0];
}

// The value of all lanes, on every lane, where the order is free: in one instruction, if the operator has it.
template <class Operator, class Item>
__device__ Item WarpTotal(Item item) {
  if constexpr (requires { Operator::ReduceWarp(item); }) {
    return Operator::ReduceWarp(item);
  } else {
    return WarpTree<Operator>(item);
  }
}

// The tree of lanes 0 .. l, on each lane l: Sklansky's scan. The right half of every block adds the whole left half.
template <class Operator, class Item>
__device__ Item WarpTrees(Item item) {
  const int lane = LaneOfWarp();
#pragma unroll
  for (int width = 1; width < kWarpThreads; width *= 2) {
    const Item left_half = ShuffleFrom(item, (lane & -2 * width) + width - 1);
    if ((lane & width) != 0) item = Operator::Combine(left_half, item);
  }
  return item;
}

template <class Item>
struct WarpJoined {
  Item before;  // The tree of the lanes before this one; neutral for lane 0.
  Item value;   // The join of lanes 0 up to and including this one.
};

template <class Operator, class Item>
__device__ WarpJoined<Item> WarpJoins(Item item, Item neutral) {
  const Item before = ShuffleFrom(WarpTrees<Operator>(item), LaneOfWarp() - 1);
  if (LaneOfWarp() == 0) return {neutral, item};
  return {before, Operator::Combine(before, item)};
}

// The join of lanes 0 .. last, on every lane.
template <class Operator, class Item>
__device__ Item WarpJoin(Item item, Item neutral, int last) {
  const Item before = WarpTree<Operator>(LaneOfWarp() < last ? item : neutral);
  return Operator::Combine(before, ShuffleFrom(item, last));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_WARP_JOIN_CUH_
