// What the reduce kernels have in common: their parameters, the value of a leaf, and how min and max find the position
// of what they found. Positions are not carried along: the key of the result is known first, then the first element
// that has it is looked for, in one tile.
#ifndef PREFIXD_KERNELS_CUDA_REDUCE_PARTS_CUH_
#define PREFIXD_KERNELS_CUDA_REDUCE_PARTS_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

template <class In, class Out>
struct ReduceParams {
  const In* in;
  uint64_t num_items;
  uint64_t first_item;
  uint32_t num_tiles;  // Tickets to take: each is for a tile, or in the ring for several.
  Out neutral;         // What changes nothing beside any element.
  bool aligned;        // `in` can be moved run by run.
  ReduceState init;
  const ReduceState* state_in;
  ReduceState* state_out;  // May be state_in.
  TileStates states;
};

template <Op kOp>
inline constexpr bool kHasPosition = kOp == Op::kMin || kOp == Op::kMax;

// Whether two items stand for the same value: any two NaNs do, -0 and +0 do not.
template <Op kOp, class Out, class Item>
__device__ bool IsSame(Item a, Item b) {
  if constexpr (kIsFloating<Item> && kHasPosition<kOp>) {
    return OrderKeys<kOp, Out>::Load(a) == OrderKeys<kOp, Out>::Load(b);
  } else {
    return a == b;
  }
}

// The value of the leaf whose runs the lanes hold, on every lane. num_valid: items of the leaf that exist.
template <class Operator, class In, class Item = typename Operator::Item>
__device__ Item LeafValue(const Run<In>& run, int num_valid, Item neutral) {
  Item value = neutral;
#pragma unroll
  for (int i = 0; i < kRunItems; ++i) {
    const bool exists = LaneOfWarp() * kRunItems + i < num_valid;
    const Item item = exists ? Operator::Load(run.items[i]) : neutral;
    value = i == 0 ? item : Operator::Combine(value, item);
  }
  return WarpJoin<Operator>(value, neutral, LastSlot(num_valid, kRunItems));
}

// What stands in front of the array, as the fold begins with it: where positions count, the neutral item, because the
// start is compared with the whole array at the end.
template <Op kOp, class In, class Out>
__device__ auto FoldStart(const ReduceParams<In, Out>& p, const ReduceState& start) {
  return Operator<kOp, Out>::Load(kHasPosition<kOp> ? p.neutral : ValueAs<Out>(start.value));
}

// For min and max: the start, or the array's value with the position that it comes from; the lower one wins a tie.
template <Op kOp, class Out, class Item>
__device__ ReduceState BetterOf(const ReduceState& start, Item value, uint64_t position) {
  using Operator = Operator<kOp, Out>;
  const Item start_value = Operator::Load(ValueAs<Out>(start.value));
  const bool start_wins = IsSame<kOp, Out>(start_value, value)
                              ? start.position <= position
                              : IsSame<kOp, Out>(Operator::Combine(start_value, value), start_value);
  return {ValueOf(Operator::Store(start_wins ? start_value : value)), start_wins ? start.position : position};
}

// Called by some whole warps, thread t of num_threads, with the value of the array on each; thread 0 writes the result.
//   first_tile()  an index: the first element with that value is among the kSearchedItems from there. By all threads
//   sync()        a barrier of the threads
template <Op kOp, int kSearchedItems = kTileItems, class In, class Out, class Item, class FirstTile, class Sync>
__device__ void FinishReduce(const ReduceParams<In, Out>& p, const In* in, const ReduceState& start, Item value,
                             ReduceState* out, uint32_t t, uint32_t num_threads, unsigned long long* s_first,
                             FirstTile&& first_tile, Sync&& sync) {
  using Operator = Operator<kOp, Out>;
  if constexpr (kHasPosition<kOp>) {
    if (t == 0) *s_first = ~0ull;
    sync();
    const uint64_t begin = first_tile();
    sync();
    const uint64_t end = min(begin + kSearchedItems, p.num_items);
    for (uint64_t i = begin + t; i < end; i += num_threads) {
      if (IsSame<kOp, Out>(Operator::Load(in[i]), value)) atomicMin(s_first, static_cast<unsigned long long>(i));
    }
    sync();
    if (t != 0) return;
    // An empty array has no position.
    const uint64_t position = p.num_items == 0 ? ReduceState::kNothing : p.first_item + *s_first + 1;
    *out = BetterOf<kOp, Out>(start, value, position);
  } else {
    if (t == 0) *out = {ValueOf(Operator::Store(value)), start.position};
  }
}

// Which of the tiles that a thread saw, in order, was the first with the best of their values.
template <Op kOp, class Out>
class BestTile {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;

  __device__ void operator()(uint32_t tile, Item value) {
    if constexpr (kHasPosition<kOp>) {
      if (tile_ != kNone && IsSame<kOp, Out>(Operator::Combine(best_, value), best_)) return;
      best_ = value;
      tile_ = tile;
    }
  }

  // The first tile with this value, by all threads. *s_first as it was set by FinishReduce.
  template <class Sync>
  __device__ uint64_t First(Item value, bool is_leader, unsigned long long* s_first, Sync&& sync) const {
    if (tile_ != kNone && IsSame<kOp, Out>(best_, value)) atomicMin(s_first, static_cast<unsigned long long>(tile_));
    sync();
    const uint64_t tile = *s_first;
    sync();
    if (is_leader) *s_first = ~0ull;
    return tile;
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  Item best_ = {};
  uint32_t tile_ = kNone;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_REDUCE_PARTS_CUH_
