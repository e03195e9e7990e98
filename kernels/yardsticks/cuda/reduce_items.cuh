// What the textbooks' reduces combine, and how a block does it.
//
// Items is a struct with
//   Item                    what is combined: an element; for min and max with its position, for kahan with its error
//   Load(element, position), Combine(left, right), Neutral(neutral element)
//   Join(start, item)       the state behind the array
// A block's way to combine is a struct with Run(item, s_items, t): every thread t hands in its item, and thread 0 gets
// the value of all of them. s_items: kReduceThreads items. Between two calls there must be a barrier.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_REDUCE_ITEMS_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_REDUCE_ITEMS_CUH_

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/reduce_parts.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/device.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

inline constexpr int kReduceThreads = 512;

// Sums.
template <Op kOp, class T>
struct ReduceItems {
  using Operator = Operator<kOp, T>;
  using Item = typename Operator::Item;

  static __device__ Item Load(T element, uint64_t /*position*/) { return Operator::Load(element); }
  static __device__ Item Neutral(T neutral) { return Operator::Load(neutral); }
  static __device__ Item Combine(Item left, Item right) { return Operator::Combine(left, right); }
  static __device__ ReduceState Join(const ReduceState& start, Item item) {
    const Item joined = Operator::Combine(Operator::Load(ValueAs<T>(start.value)), item);
    return {ValueOf(Operator::Store(joined)), start.position};
  }
};

// Min and max: the lower position wins a tie.
template <Op kOp, class T>
requires(kHasPosition<kOp>) struct ReduceItems<kOp, T> {
  using Operator = Operator<kOp, T>;
  struct Item {
    typename Operator::Item value;
    uint64_t position;
  };

  static __device__ Item Load(T element, uint64_t position) { return {Operator::Load(element), position}; }
  static __device__ Item Neutral(T neutral) { return {Operator::Load(neutral), ReduceState::kNothing}; }
  static __device__ Item Combine(Item left, Item right) {
    if (IsSame<kOp, T>(left.value, right.value)) return left.position <= right.position ? left : right;
    return IsSame<kOp, T>(Operator::Combine(left.value, right.value), left.value) ? left : right;
  }
  static __device__ ReduceState Join(const ReduceState& start, Item item) {
    return BetterOf<kOp, T>(start, item.value, item.position);
  }
};

template <class T>
struct ReduceTileParams {
  const T* in;
  uint64_t num_items;
  uint64_t first_item;
  uint32_t num_tiles;
  T neutral;
  ReduceState init;
  const ReduceState* state_in;
  ReduceState* state_out;  // May be state_in.

  // Called by one thread, once.
  template <class Items>
  __device__ void Finish(typename Items::Item item) const {
    *state_out = Items::Join(state_in != nullptr ? *state_in : init, item);
  }
  // Item i; neutral past the end.
  template <class Items>
  __device__ typename Items::Item Load(uint64_t i) const {
    return i < num_items ? Items::Load(in[i], first_item + i + 1) : Items::Neutral(neutral);
  }
};

template <class T>
ReduceTileParams<T> MakeReduceTileParams(const ReduceArgs& args) {
  return {.in = static_cast<const T*>(args.in),
          .num_items = args.num_items,
          .first_item = args.first_item,
          .num_tiles = 0,
          .neutral = Neutral(args.op, args.dtype).As<T>(),
          .init = args.init,
          .state_in = args.state_in,
          .state_out = args.state_out};
}

// A tree in shared memory, neighbours first: log2 b steps, a barrier each. Threads that have nothing left to do are
// spread over all warps, so every warp goes through every step, and step d is a 2d-way bank conflict.
struct TreeInterleaved {
  template <class Items, class Item = typename Items::Item>
  static __device__ Item Run(Item item, Item* s_items, int t) {
    s_items[t] = item;
    __syncthreads();
    for (int distance = 1; distance < kReduceThreads; distance *= 2) {
      if (t % (2 * distance) == 0) s_items[t] = Items::Combine(s_items[t], s_items[t + distance]);
      __syncthreads();
    }
    return s_items[0];
  }
};

// A tree in shared memory, the halves first: the threads at work stay together, and meet no bank twice. It combines
// items that are not neighbours, so the operator must commute.
struct TreeSequential {
  template <class Items, class Item = typename Items::Item>
  static __device__ Item Run(Item item, Item* s_items, int t) {
    s_items[t] = item;
    __syncthreads();
    for (int distance = kReduceThreads / 2; distance > 0; distance /= 2) {
      if (t < distance) s_items[t] = Items::Combine(s_items[t], s_items[t + distance]);
      __syncthreads();
    }
    return s_items[0];
  }
};

template <class Item>
__device__ Item ShuffleDown(Item item, int distance) {
  if constexpr (requires { item.position; }) {
    return {__shfl_down_sync(kAllLanes, item.value, distance), __shfl_down_sync(kAllLanes, item.position, distance)};
  } else if constexpr (requires { item.error; }) {
    return {__shfl_down_sync(kAllLanes, item.sum, distance), __shfl_down_sync(kAllLanes, item.error, distance)};
  } else {
    return __shfl_down_sync(kAllLanes, item, distance);
  }
}

// A tree in the registers of each warp, neighbours first, then a tree of the warps' values: one barrier.
struct WarpShuffleTree {
  // The value of the first kLanes lanes, on lane 0; what the others return means nothing.
  template <class Items, int kLanes, class Item>
  static __device__ Item OfLanes(Item item) {
    for (int distance = 1; distance < kLanes; distance *= 2) item = Items::Combine(item, ShuffleDown(item, distance));
    return item;
  }

  template <class Items, class Item = typename Items::Item>
  static __device__ Item Run(Item item, Item* s_items, int t) {
    constexpr int kWarps = kReduceThreads / kWarpThreads;
    item = OfLanes<Items, kWarpThreads>(item);
    if (LaneOfWarp() == 0) s_items[WarpOfBlock()] = item;
    __syncthreads();
    return t < kWarpThreads ? OfLanes<Items, kWarps>(s_items[t % kWarps]) : item;
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_REDUCE_ITEMS_CUH_
