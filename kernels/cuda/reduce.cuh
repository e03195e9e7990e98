// Reduce, strategy "single_launch", in the order of kernels/NUMERICS.md: blocks reduce tiles, the warp that finishes
// the last tile of a group joins the group, and the block that finishes last folds the groups. Who does what depends on
// time; what is combined with what does not.
//
// Traffic: reads n, writes an item a tile.
// Source: the single-launch idea is the CUDA programming guide's threadFenceReduction; here with acquire and release.
#ifndef PREFIXD_KERNELS_CUDA_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_REDUCE_CUH_

#include <algorithm>
#include <cstdint>
#include <cuda/atomic>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

inline constexpr int kReduceBlocksPerMultiprocessor = 2;

// An item that remembers where it was, as ReduceState does.
template <class Value>
struct Positioned {
  Value value;
  uint64_t position;
};

template <class Value>
__device__ Positioned<Value> ShuffleFrom(Positioned<Value> v, int lane) {
  return {ShuffleFrom(v.value, lane), ShuffleFrom(v.position, lane)};
}

// What a reduce combines: for min and max items with their positions, the lower of which wins a tie (kNothing, the
// largest, loses it); for the other operators items alone.
template <Op kOp, class T, bool kPositioned = kOp == Op::kMin || kOp == Op::kMax>
struct Reducer {
  using Operator = Operator<kOp, T>;
  using Item = typename Operator::Item;
  static constexpr bool kAnyOrder = Operator::kAnyOrder;
  static __device__ Item Load(T element, uint64_t /*position*/) { return Operator::Load(element); }
  static __device__ T Store(Item item) { return Operator::Store(item); }
  static __device__ uint64_t PositionOf(Item /*item*/, uint64_t start_position) { return start_position; }
  static __device__ Item Combine(Item left, Item right) { return Operator::Combine(left, right); }
};

template <Op kOp, class T>
struct Reducer<kOp, T, true> {
  // Items that are alike are equal.
  using Operator = std::conditional_t<std::is_same_v<T, float>, OrderKeys<kOp, float>, Operator<kOp, T>>;
  using Item = Positioned<typename Operator::Item>;
  static constexpr bool kAnyOrder = true;
  static __device__ Item Load(T element, uint64_t position) { return {Operator::Load(element), position}; }
  static __device__ T Store(Item item) { return Operator::Store(item.value); }
  static __device__ uint64_t PositionOf(Item item, uint64_t /*start_position*/) { return item.position; }
  static __device__ Item Combine(Item left, Item right) {
    if (left.value == right.value) return left.position <= right.position ? left : right;
    return Operator::Combine(left.value, right.value) == left.value ? left : right;
  }
};

template <class T, Op kOp>
struct ReduceParams {
  using Item = typename Reducer<kOp, T>::Item;
  const T* in;
  uint64_t num_items;
  uint64_t first_item;
  uint32_t num_tiles;
  uint32_t num_groups;
  bool aligned;
  T neutral;
  ReduceState init;
  const ReduceState* state_in;
  ReduceState* state_out;  // May be state_in.
  Item* tile_values;
  Item* group_values;
  uint32_t* finished_tiles;  // Of each group. 0 before and after the launch, as is the next.
  uint32_t* finished_blocks;
};

// The value of a tile, on every lane of one warp. The values of its leaves are in s_leaf_values.
template <class T, Op kOp>
__device__ void ReduceTile(const ReduceParams<T, kOp>& p, uint32_t tile,
                           typename Reducer<kOp, T>::Item (&s_leaf_values)[kJoinSlots]) {
  using Reducer = Reducer<kOp, T>;
  constexpr int kRows = TileShape::kLeavesPerWarp;
  const uint64_t tile_begin = uint64_t{tile} * kTileItems;
  const int num_valid = NumValid(p.num_items, tile_begin);
  ThreadRuns<T> runs;
  LoadTile(TileView<const T>(p.in, p.num_items, tile_begin, false), num_valid, p.neutral,
           p.aligned && num_valid == kTileItems, runs);
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const auto item_at = [&](int i) {
      const int item = FirstItemOfRun(row) + i;
      return Reducer::Load(runs[row].items[i],
                           item < num_valid ? p.first_item + tile_begin + item + 1 : ReduceState::kNothing);
    };
    auto value = item_at(0);
#pragma unroll
    for (int i = 1; i < kRunItems; ++i) value = Reducer::Combine(value, item_at(i));
    const int last_run = LastSlot(num_valid - LeafOfTile(row) * kLeafItems, kRunItems);
    value = WarpJoin<Reducer>(value, Reducer::Load(p.neutral, ReduceState::kNothing), last_run);
    if (LaneOfWarp() == 0) s_leaf_values[LeafOfTile(row)] = value;
  }
}

// Whether this arrival is the last of `num_arrivals`; if so, what the others did before theirs has happened before, and
// the counter is 0 again. Called by one thread.
inline __device__ bool ArriveLast(uint32_t* counter, uint32_t num_arrivals) {
  ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_device> arrivals(*counter);
  if (arrivals.fetch_add(1, ::cuda::memory_order_acq_rel) != num_arrivals - 1) return false;
  arrivals.store(0, ::cuda::memory_order_relaxed);  // The stream orders it before the next launch.
  return true;
}

template <class T, Op kOp>
__global__ void __launch_bounds__(TileShape::kThreads, kReduceBlocksPerMultiprocessor)
    ReduceKernel(const __grid_constant__ ReduceParams<T, kOp> p) {
  using Reducer = Reducer<kOp, T>;
  using Item = typename Reducer::Item;
  __shared__ Item s_leaf_values[2][kJoinSlots];
  __shared__ Item s_group_values[TileShape::kThreads];
  __shared__ bool s_is_last;
  const Item neutral = Reducer::Load(p.neutral, ReduceState::kNothing);

  // The warps take turns in joining a tile, while the others load the next: its leaves go to the other buffer, and
  // before this one is written again, there is another barrier.
  int turn = 0;
  for (uint32_t tile = blockIdx.x; tile < p.num_tiles; tile += gridDim.x, ++turn) {
    Item(&s_values)[kJoinSlots] = s_leaf_values[turn % 2];
    ReduceTile<T, kOp>(p, tile, s_values);
    __syncthreads();
    if (WarpOfBlock() != turn % TileShape::kWarps) continue;
    const int last_leaf = LastSlot(NumValid(p.num_items, uint64_t{tile} * kTileItems), kLeafItems);
    const Item tile_value = WarpJoin<Reducer>(s_values[LaneOfWarp()], neutral, last_leaf);
    const uint32_t group = tile / kJoinSlots;
    const uint32_t group_tiles = min(p.num_tiles - group * kJoinSlots, uint32_t{kJoinSlots});
    bool is_last = false;
    if (LaneOfWarp() == 0) {
      p.tile_values[tile] = tile_value;
      is_last = ArriveLast(&p.finished_tiles[group], group_tiles);
    }
    if (!__shfl_sync(kAllLanes, is_last, 0)) continue;
    __syncwarp();  // What lane 0 has acquired holds for all lanes.
    const Item value = LaneOfWarp() < group_tiles ? p.tile_values[group * kJoinSlots + LaneOfWarp()] : neutral;
    const Item group_value = WarpJoin<Reducer>(value, neutral, static_cast<int>(group_tiles) - 1);
    if (LaneOfWarp() == 0) p.group_values[group] = group_value;
  }

  // Fold the groups.
  __syncthreads();
  if (threadIdx.x == 0) s_is_last = ArriveLast(p.finished_blocks, gridDim.x);
  __syncthreads();
  if (!s_is_last) return;
  const ReduceState start = p.state_in != nullptr ? *p.state_in : p.init;
  Item result = Reducer::Load(ValueAs<T>(start.value), start.position);
  for (uint32_t first = 0; first < p.num_groups; first += TileShape::kThreads) {
    const uint32_t group = first + threadIdx.x;
    s_group_values[threadIdx.x] = group < p.num_groups ? p.group_values[group] : neutral;
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll 8
      for (int i = 0; i < TileShape::kThreads; ++i) result = Reducer::Combine(result, s_group_values[i]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    p.state_out->value = ValueOf(Reducer::Store(result));
    p.state_out->position = Reducer::PositionOf(result, start.position);
  }
}

template <class T>
cudaError_t LaunchReduce(const ReduceArgs& args, LaunchContext* context) {
  uint32_t num_tiles = 0;
  if (const cudaError_t error = CountTiles(args.num_items, kTileItems, &num_tiles); error != cudaSuccess) return error;
  const uint32_t num_groups = (num_tiles - 1) / kJoinSlots + 1;
  const uint32_t num_blocks =
      std::min<uint32_t>(num_tiles, kReduceBlocksPerMultiprocessor * context->num_multiprocessors);
  return VisitOp<T>(args.op, [&](auto op_tag) {
    constexpr Op kOp = decltype(op_tag)::kValue;
    using Item = typename ReduceParams<T, kOp>::Item;
    void* d_values = nullptr;
    void* d_counters = nullptr;
    cudaError_t error =
        context->scratch.Get(context->stream, (size_t{num_tiles} + num_groups) * sizeof(Item), &d_values);
    if (error == cudaSuccess) {
      error = context->counters.Get(context->stream, (size_t{num_groups} + 1) * sizeof(uint32_t), &d_counters);
    }
    if (error != cudaSuccess) return error;
    const auto* in = static_cast<const T*>(args.in);
    const ReduceParams<T, kOp> params = {.in = in,
                                         .num_items = args.num_items,
                                         .first_item = args.first_item,
                                         .num_tiles = num_tiles,
                                         .num_groups = num_groups,
                                         .aligned = HasAlignedRuns(in),
                                         .neutral = Neutral(args.op, args.dtype).template As<T>(),
                                         .init = args.init,
                                         .state_in = args.state_in,
                                         .state_out = args.state_out,
                                         .tile_values = static_cast<Item*>(d_values),
                                         .group_values = static_cast<Item*>(d_values) + num_tiles,
                                         .finished_tiles = static_cast<uint32_t*>(d_counters) + 1,
                                         .finished_blocks = static_cast<uint32_t*>(d_counters)};
    return Launch(ReduceKernel<T, kOp>, num_blocks, TileShape::kThreads, context->stream, params);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_REDUCE_CUH_
