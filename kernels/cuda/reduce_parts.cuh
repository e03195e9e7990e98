// The common parts of the reduce kernels: their parameters, the value of a leaf, and how min and max find the position
// of their result. Positions are not carried along: when the result is known, one tile is searched for the first
// element that has its key.
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
  uint32_t num_tiles;  // The number of tickets. Each is for a tile, or in the ring for several.
  Out neutral;         // Changes nothing beside any element.
  bool aligned;        // `in` can be moved run by run.
  bool is_signed;      // Whether the elements are signed integers, whatever In is.
  int result_bytes;    // The size of a state's value, which may be wider than Out.
  ReduceState init;
  const ReduceState* state_in;
  ReduceState* state_out;  // May be state_in.
  TileStates states;
};

// As a kernel has them, but for the number of tiles, what is aligned, and the states.
template <class In, class Out, Op kOp>
ReduceParams<In, Out> ReduceParamsOf(const ReduceArgs& args) {
  return {.in = static_cast<const In*>(args.in),
          .num_items = args.num_items,
          .first_item = args.first_item,
          .num_tiles = 0,
          .neutral = NeutralOf<kOp, Out>(),
          .aligned = false,
          .is_signed = IsSigned(args.dtype),
          .result_bytes = static_cast<int>(SizeOf(AccumulatorOf(args.output()))),
          .init = StartOf(args),
          .state_in = args.state_in,
          .state_out = args.state_out,
          .states = {}};
}

template <Op kOp>
inline constexpr bool kHasPosition = kOp == Op::kMin || kOp == Op::kMax;

// Sums, products and the like are computed in the type of the result. Other operators are computed in the elements'
// type; at the end they are joined with the start, which may be of a wider type. So one kernel gives results of all
// types.
template <Op kOp>
inline constexpr bool kWidensElements = kOp == Op::kSum || kOp == Op::kProd || kOp == Op::kLogAddExp;

// Whether the operator says what a state is.
template <Op kOp, class Out>
inline constexpr bool kMakesStates = requires(const ReduceState& state) {
  Operator<kOp, Out>::FromState(state);
};

// Converts a state's value, which is of T or of a wider type of T's kind, to the widest type of that kind, and back.
template <class T>
using Widest = std::conditional_t<kIsFloating<T>, double, std::conditional_t<kIsSignedInteger<T>, int64_t, uint64_t>>;

template <class T>
__device__ Widest<T> FromState(Value value, int num_bytes) {
  if constexpr (kIsFloating<T>) {
    return num_bytes == sizeof(float) ? ValueAs<float>(value) : ValueAs<double>(value);
  } else {
    const int unused_bits = 64 - 8 * num_bytes;
    return static_cast<Widest<T>>(value.bits << unused_bits) >> unused_bits;
  }
}

template <class T>
__device__ Value ToState(Widest<T> value, int num_bytes) {
  if constexpr (kIsFloating<T>) {
    return num_bytes == sizeof(float) ? ValueOf(Canonical(static_cast<float>(value))) : ValueOf(Canonical(value));
  } else {
    return ValueOf(static_cast<uint64_t>(value) & (~uint64_t{0} >> (64 - 8 * num_bytes)));
  }
}

// Whether two items of min or max stand for the same value. Any two NaNs do; -0 and +0 do not.
template <Op kOp, class Out, class Item>
__device__ bool IsSame(Item a, Item b) {
  if constexpr (!kHasPosition<kOp>) {
    return false;  // Nobody asks.
  } else if constexpr (kIsFloating<Item>) {
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

// What the fold begins with: the start, or the neutral item if the start is joined at the end.
template <Op kOp, class In, class Out>
__device__ auto FoldStart(const ReduceParams<In, Out>& p, const ReduceState& start) {
  if constexpr (kMakesStates<kOp, Out>) {
    return Operator<kOp, Out>::FromState(start);
  } else {
    return Operator<kOp, Out>::Load(kWidensElements<kOp> ? ValueAs<Out>(start.value) : p.neutral);
  }
}

// For min and max: the better of the start and the array's value, with its position. The lower position wins a tie.
template <Op kOp, class Out, class Item>
__device__ ReduceState BetterOf(const ReduceState& start, Item value, uint64_t position) {
  using Operator = Operator<kOp, Out>;
  const Item start_value = Operator::Load(ValueAs<Out>(start.value));
  const bool start_wins = IsSame<kOp, Out>(start_value, value)
                              ? start.position <= position
                              : IsSame<kOp, Out>(Operator::Combine(start_value, value), start_value);
  return {ValueOf(Operator::Store(start_wins ? start_value : value)), start_wins ? start.position : position};
}

// The state after an array with this value, with `start` in front of it. The position counts only for min and max.
template <Op kOp, class In, class Out, class Item>
__device__ ReduceState StateBehind(const ReduceParams<In, Out>& p, const ReduceState& start, Item item,
                                   uint64_t position) {
  const Out value = Operator<kOp, Out>::Store(item);
  if constexpr (kMakesStates<kOp, Out>) {
    return Operator<kOp, Out>::ToState(item, start.position);
  } else if constexpr (kWidensElements<kOp>) {
    return {ValueOf(value), start.position};
  } else if (p.num_items == 0) {
    return {ToState<Out>(FromState<Out>(start.value, p.result_bytes), p.result_bytes), start.position};
  } else if constexpr (kHasPosition<kOp>) {
    using Wide = Widest<Out>;
    const ReduceState wide_start = {ValueOf(FromState<Out>(start.value, p.result_bytes)), start.position};
    const auto wide_item = Operator<kOp, Wide>::Load(static_cast<Wide>(value));
    const ReduceState better = BetterOf<kOp, Wide>(wide_start, wide_item, position);
    return {ToState<Out>(ValueAs<Wide>(better.value), p.result_bytes), better.position};
  } else {
    static_assert(kOp == Op::kAnd || kOp == Op::kOr || kOp == Op::kXor);
    const uint64_t bits = p.is_signed ? FromState<int64_t>(ValueOf(value), sizeof(Out)) : ValueOf(value).bits;
    const uint64_t joined = Operator<kOp, uint64_t>::Combine(start.value.bits, bits);
    return {ToState<uint64_t>(joined, p.result_bytes), start.position};
  }
}

// Called by several whole warps, thread t of num_threads, each with the array's value; thread 0 writes the result.
//   first_tile()  an index from which kSearchedItems contain the first element with that value. All threads call it
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
    // Loads that wait for each other would take longer than all that came before them.
    constexpr int kLoads = 8;
    for (uint64_t i = begin + t; i < end; i += kLoads * num_threads) {
      In items[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) items[k] = in[min(i + k * num_threads, end - 1)];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        const uint64_t at = min(i + k * num_threads, end - 1);
        if (IsSame<kOp, Out>(Operator::Load(items[k]), value)) atomicMin(s_first, static_cast<unsigned long long>(at));
      }
    }
    sync();
    if (t == 0) *out = StateBehind<kOp>(p, start, value, p.first_item + *s_first + 1);
  } else {
    if (t == 0) *out = StateBehind<kOp>(p, start, value, ReduceState::kNothing);
  }
}

// Remembers the best value among the tiles that a thread sees, in order, and the first tile that has it.
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

  // The first tile with this value. Called by all threads. Needs: *s_first is as FinishReduce set it.
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
