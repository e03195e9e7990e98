// Reduce of many arrays that stand one by one to a value each: of the rows of a matrix, or of segments, whose lengths
// differ. A warp has tiles of four arrays at a time; or where all arrays are short, a few of its lanes have one each.
// See array_reduce.cuh for arrays of several tiles.
// Traffic: reads n, and the offsets; writes a value for each array. One launch.
#ifndef PREFIXD_KERNELS_CUDA_ROW_REDUCE_CUH_
#define PREFIXD_KERNELS_CUDA_ROW_REDUCE_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/array_reduce.cuh"
#include "kernels/cuda/slot_table.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// What a lane reads at once: a run; or, where the order is free, 16 bytes of elements at least.
template <class Operator, class In>
inline constexpr int kLaneItems = !Operator::kAnyOrder || sizeof(In) >= 4 ? kRunItems : 16 / sizeof(In);
template <class Operator, class In>
using LaneRun = Vector<In, kLaneItems<Operator, In>>;

// The lane's elements from in[first] on, of num_items. aligned: in + first is, to a LaneRun.
template <class Operator, class In>
__device__ void LoadLaneRun(const In* in, int first, int num_items, bool aligned, LaneRun<Operator, In>& run) {
  constexpr int kItems = kLaneItems<Operator, In>;
  if (aligned && first + kItems <= num_items) {
    run = *reinterpret_cast<const LaneRun<Operator, In>*>(in + first);
    return;
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) run.items[k] = first + k < num_items ? in[first + k] : In{};
}

// The value of the first num_valid elements; neutral if there are none.
template <class Operator, class In, class Item = typename Operator::Item>
__device__ Item LaneValue(const LaneRun<Operator, In>& run, int num_valid, Item neutral) {
  Item value = num_valid > 0 ? Operator::Load(run.items[0]) : neutral;
#pragma unroll
  for (int k = 1; k < kLaneItems<Operator, In>; ++k) {
    if (k < num_valid) value = Operator::Combine(value, Operator::Load(run.items[k]));
  }
  return value;
}

// ---- A warp has tiles of four arrays -------------------------------------------------------------------------------
inline constexpr int kSlotsAtOnce = 4;

// Reduces four tiles leaf by leaf, one leaf of each at a time, for what four need of shuffles is little more than what
// one needs.
template <class Operator, class In>
class FourTiles {
 public:
  using Item = typename Operator::Item;

  // in: of all arrays.
  __device__ FourTiles(const In* in, const Slot* slots, Item neutral) : neutral_(neutral) {
#pragma unroll
    for (int s = 0; s < kSlotsAtOnce; ++s) {
      in_[s] = in + slots[s].begin;
      num_items_[s] = slots[s].num_items;
      num_passes_ = max(num_passes_, (num_items_[s] + kPassItems - 1) / kPassItems);
    }
  }

  // Lane l gets the value of tile l % kSlotsAtOnce.
  __device__ Item Values() const {
    if constexpr (Operator::kAnyOrder) {
      Item values[kSlotsAtOnce] = {neutral_, neutral_, neutral_, neutral_};
      ForPasses(0, num_passes_, [&](int /*pass*/, Item(&runs)[kSlotsAtOnce]) {
#pragma unroll
        for (int s = 0; s < kSlotsAtOnce; ++s) values[s] = Operator::Combine(values[s], runs[s]);
      });
      return WarpTreeOfRows<Operator>(values);
    } else {
      // Lane l has leaf 8 p + l / 4 of tile l % 4 in leaves[p].
      Item leaves[kParts];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        leaves[part] = neutral_;
        if (part * kPartLeaves >= num_passes_) continue;
        ForPasses(part * kPartLeaves, min((part + 1) * kPartLeaves, num_passes_),
                  [&](int leaf, Item(&runs)[kSlotsAtOnce]) {
                    const Item value = LeafValues(runs, leaf);
                    if (LaneOfWarp() / kSlotsAtOnce == leaf % kPartLeaves) leaves[part] = value;
                  });
      }
      return num_passes_ <= 1 ? ShuffleFrom(leaves[0], LaneOfWarp() % kSlotsAtOnce) : JoinLeaves(leaves);
    }
  }

 private:
  static constexpr int kPassItems = kLaneItems<Operator, In> * kWarpThreads;
  static constexpr int kPartLeaves = kWarpThreads / kSlotsAtOnce;
  static constexpr int kParts = kJoinSlots / kPartLeaves;
  using Runs = LaneRun<Operator, In>[kSlotsAtOnce];

  // Calls visit(pass, runs) with the values of the lane's runs of a pass, while those of the next one are on their way.
  template <class Visit>
  __device__ void ForPasses(int first, int last, Visit visit) const {
    Runs ahead;
    Load(first, ahead);
    for (int pass = first; pass < last; ++pass) {
      Item runs[kSlotsAtOnce];
#pragma unroll
      for (int s = 0; s < kSlotsAtOnce; ++s) {
        const int item = pass * kPassItems + LaneOfWarp() * kLaneItems<Operator, In>;
        runs[s] = LaneValue<Operator, In>(ahead[s], num_items_[s] - item, neutral_);
      }
      if (pass + 1 < last) Load(pass + 1, ahead);
      visit(pass, runs);
    }
  }
  __device__ void Load(int pass, Runs& runs) const {
#pragma unroll
    for (int s = 0; s < kSlotsAtOnce; ++s) {
      const bool aligned = reinterpret_cast<uintptr_t>(in_[s]) % alignof(LaneRun<Operator, In>) == 0;
      LoadLaneRun<Operator, In>(in_[s], pass * kPassItems + LaneOfWarp() * kLaneItems<Operator, In>, num_items_[s],
                                aligned, runs[s]);
    }
  }

  // The values of a leaf of each tile, whose runs the lanes have: lane l gets that of tile l % kSlotsAtOnce.
  __device__ Item LeafValues(Item (&runs)[kSlotsAtOnce], int leaf) const {
    Item last_run = neutral_;
#pragma unroll
    for (int s = 0; s < kSlotsAtOnce; ++s) {
      const int num_valid = num_items_[s] - leaf * kLeafItems;
      const int last = num_valid <= 0 ? 0 : min((num_valid - 1) / kRunItems, kJoinSlots - 1);
      const Item run = ShuffleFrom(runs[s], last);
      if (LaneOfWarp() % kSlotsAtOnce == s) last_run = run;
      if (LaneOfWarp() >= last) runs[s] = neutral_;
    }
    return Operator::Combine(WarpTreeOfRows<Operator>(runs), last_run);
  }

  // All tiles at once: their leaves stand side by side.
  __device__ Item JoinLeaves(const Item (&leaves)[kParts]) const {
    const int mine = LaneOfWarp() % kSlotsAtOnce;
    int num_items = 0;
#pragma unroll
    for (int s = 0; s < kSlotsAtOnce; ++s) {
      if (mine == s) num_items = num_items_[s];
    }
    const int last = max((num_items - 1) / kLeafItems, 0);
    Item last_leaf = neutral_;
    Item trees[kParts];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      trees[part] = neutral_;
      if (part * kPartLeaves >= num_passes_) continue;
      const Item found = ShuffleFrom(leaves[part], last % kPartLeaves * kSlotsAtOnce + mine);
      if (last / kPartLeaves == part) last_leaf = found;
      Item tree = part * kPartLeaves + LaneOfWarp() / kSlotsAtOnce < last ? leaves[part] : neutral_;
#pragma unroll
      for (int width = kSlotsAtOnce; width < kWarpThreads; width *= 2) {
        const Item other = ShuffleFrom(tree, LaneOfWarp() ^ width);
        tree = CombineNeighbours<Operator>((LaneOfWarp() & width) != 0, tree, other);
      }
      trees[part] = tree;
    }
    static_assert(kParts == 4);
    return Operator::Combine(
        Operator::Combine(Operator::Combine(trees[0], trees[1]), Operator::Combine(trees[2], trees[3])), last_leaf);
  }

  const Item neutral_;
  const In* in_[kSlotsAtOnce];
  int num_items_[kSlotsAtOnce];
  int num_passes_ = 0;
};

// Where the state of a tile is, of an array that begins at `array_begin` and has several: so that states take memory
// for the elements there are, and none for each array. Tiles of two arrays begin between two multiples of kTileItems
// only where they are the last of the one and the first of the other.
inline __device__ uint32_t StateOf(uint64_t array_begin, uint64_t tile) {
  return static_cast<uint32_t>(2 * (array_begin / kTileItems + tile) + (tile == 0 ? 1 : 0));
}
inline uint64_t NumStates(uint64_t all_items) { return 2 * (all_items / kTileItems + 1); }

// The start, joined with the tiles of an array, of which the warp that calls has published the last.
template <class Operator>
__device__ typename Operator::Item FoldTiles(const TileStates& states, uint32_t epoch, uint64_t array_begin,
                                             uint64_t num_tiles, typename Operator::Item start,
                                             typename Operator::Item neutral) {
  using Item = typename Operator::Item;
  constexpr int kGroups = 32 / sizeof(Item);  // Whose states are read at once.
  Item array = start;
  for (uint64_t first = 0; first < num_tiles; first += kGroups * kJoinSlots) {
    Item values[kGroups];
    for (bool found = false; !found;) {
      StateWords<Item> words[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const uint64_t tile = first + g * kJoinSlots + LaneOfWarp();
        words[g] = states.Load<Item>(StateOf(array_begin, min(tile, num_tiles - 1)));
      }
      found = true;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) found &= words[g].Get(epoch, &values[g]);
    }
    __syncwarp();
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const uint64_t group = first + g * kJoinSlots;
      if (group >= num_tiles) break;
      const uint64_t last = min(num_tiles - 1 - group, uint64_t{kJoinSlots - 1});
      const Item value = group + LaneOfWarp() < num_tiles ? values[g] : neutral;
      array = Operator::Combine(array, WarpJoin<Operator>(value, neutral, static_cast<int>(last)));
    }
  }
  return array;
}

// Leaves the values of tiles: in the place of their array's, or for who has its last tile. Called by a warp, whose
// first lanes have them.
template <Op kOp, class In, class Out, class Item>
__device__ void LeaveValues(const ArrayReduceParams<In, Out>& p, const Slot* slots, Item value, Item start,
                            Item neutral) {
  using Operator = Operator<kOp, Out>;
  Slot mine;
  if (LaneOfWarp() < kSlotsAtOnce) mine = slots[LaneOfWarp()];
  if (mine.num_tiles == 1) {
    mine.num_items > 0 ? StoreValue<kOp>(p, mine.array, Operator::Combine(start, value))
                       : StoreBits(p.values, p.value_bytes, mine.array, p.empty.bits);
  }
  if (!p.is_split) return;
  const uint32_t epoch = p.each.states.Epoch();
  const uint64_t array_begin = mine.begin - uint64_t{mine.tile} * kTileItems;
  if (mine.num_tiles > 1) p.each.states.Publish(StateOf(array_begin, mine.tile), epoch, value);
  __syncwarp();
  uint32_t last_tiles = __ballot_sync(kAllLanes, mine.num_tiles > 1 && mine.tile == mine.num_tiles - 1);
  for (; last_tiles != 0; last_tiles &= last_tiles - 1) {
    const int lane = __ffs(static_cast<int>(last_tiles)) - 1;
    const Item array = FoldTiles<Operator>(p.each.states, epoch, ShuffleFrom(array_begin, lane),
                                           ShuffleFrom(mine.num_tiles, lane), start, neutral);
    if (LaneOfWarp() == lane) StoreValue<kOp>(p, mine.array, array);
  }
}

// The loads that are in flight decide, and so the number of blocks at once: left alone, the compiler has room for one.
template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kRowReduceWarps* kWarpThreads, sizeof(In) == 4 ? 3 : 2)
    RowReduceKernel(const __grid_constant__ ArrayReduceParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  __shared__ SlotTable s_table;
  const uint64_t slots_of_block = static_cast<uint64_t>(p.slots_of_warp) * kRowReduceWarps;
  FillTable(p, TakeBlock(p, &s_table.ticket) * slots_of_block, s_table);
  const int first = WarpOfBlock() * p.slots_of_warp;
  const Slot* const slots = s_table.slots + first;
  const Item neutral = Operator::Load(p.each.neutral);
  const Item start = FoldStart<kOp>(p.each, p.each.init);
  for (int s = 0; s < p.slots_of_warp; s += kSlotsAtOnce) {
    const Item values = FourTiles<Operator, In>(p.each.in, slots + s, neutral).Values();
    LeaveValues<kOp>(p, slots + s, values, start, neutral);
  }
  LeaveBlock(p);
}

// ---- A few lanes have an array -------------------------------------------------------------------------------------
template <class Operator, class In>
inline constexpr int kMaxShortRowItems = kLaneItems<Operator, In>* kWarpThreads;
inline constexpr int kShortRowPasses = 8;  // Rows of a lane, one after the other; all are read at once.

template <class In, class Out, Op kOp, int kLanes>
__global__ void __launch_bounds__(kRowReduceWarps* kWarpThreads)
    ShortRowReduceKernel(const __grid_constant__ ArrayReduceParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  constexpr int kItems = kLaneItems<Operator, In>;
  constexpr int kPassRows = kWarpThreads / kLanes;
  const uint64_t warp = uint64_t{blockIdx.x} * kRowReduceWarps + WarpOfBlock();
  const uint64_t first_row = warp * kShortRowPasses * kPassRows + LaneOfWarp() / kLanes;
  const int lane = LaneOfWarp() % kLanes;
  const auto row_items = static_cast<int>(p.each.num_items);
  const Item neutral = Operator::Load(p.each.neutral);
  LaneRun<Operator, In> runs[kShortRowPasses];
#pragma unroll
  for (int pass = 0; pass < kShortRowPasses; ++pass) {
    const uint64_t row = first_row + pass * kPassRows;
    const int num_items = row < p.num_arrays ? row_items : 0;
    LoadLaneRun<Operator, In>(p.each.in + row * p.each.num_items, lane * kItems, num_items, p.each.aligned, runs[pass]);
  }
  const int last = (row_items - 1) / kItems;
#pragma unroll
  for (int pass = 0; pass < kShortRowPasses; ++pass) {
    const uint64_t row = first_row + pass * kPassRows;
    Item value = LaneValue<Operator, In>(runs[pass], row_items - lane * kItems, neutral);
    if constexpr (kLanes > 1) {
      const Item last_run = Operator::kAnyOrder ? neutral : ShuffleFrom(value, LaneOfWarp() - lane + last);
      if (!Operator::kAnyOrder && lane >= last) value = neutral;
#pragma unroll
      for (int width = 1; width < kLanes; width *= 2) {
        const Item other = ShuffleFrom(value, LaneOfWarp() ^ width);
        value = CombineNeighbours<Operator>((lane & width) != 0, value, other);
      }
      value = Operator::Combine(value, last_run);
    }
    if (lane == 0 && row < p.num_arrays) {
      StoreValue<kOp>(p, row, Operator::Combine(FoldStart<kOp>(p.each, p.each.init), value));
    }
  }
}

template <class Operator, class In>
bool AreShortRows(const ReduceArgs& args) {
  return args.offsets == nullptr && args.num_items > 0 && args.num_items <= kMaxShortRowItems<Operator, In>;
}

template <class In, class Out, Op kOp, int kLanes>
cudaError_t LaunchShortRowReduce(const ArrayReduceParams<In, Out>& params, LaunchContext* context) {
  constexpr uint64_t kBlockRows = uint64_t{kRowReduceWarps} * kShortRowPasses * (kWarpThreads / kLanes);
  const auto num_blocks = static_cast<uint32_t>((params.num_arrays + kBlockRows - 1) / kBlockRows);
  return Launch(ShortRowReduceKernel<In, Out, kOp, kLanes>, num_blocks, kRowReduceWarps * kWarpThreads, context->stream,
                params);
}

template <class In, class Out, Op kOp>
cudaError_t LaunchRowReduce(const ReduceArgs& args, LaunchContext* context) {
  using Operator = Operator<kOp, Out>;
  ArrayReduceParams<In, Out> params = ArrayParamsOf<In, Out, kOp>(args);
  constexpr int kItems = kLaneItems<Operator, In>;
  if (AreShortRows<Operator, In>(args)) {
    params.each.aligned =
        reinterpret_cast<uintptr_t>(args.in) % alignof(LaneRun<Operator, In>) == 0 && args.num_items % kItems == 0;
    const auto lanes = static_cast<int>((args.num_items + kItems - 1) / kItems);
    if (lanes <= 1) return LaunchShortRowReduce<In, Out, kOp, 1>(params, context);
    if (lanes <= 4) return LaunchShortRowReduce<In, Out, kOp, 4>(params, context);
    if (lanes <= 16) return LaunchShortRowReduce<In, Out, kOp, 16>(params, context);
    return LaunchShortRowReduce<In, Out, kOp, 32>(params, context);
  }
  // Enough for a warp to be worth its start, and not so many that some warps are left alone at the end.
  constexpr uint64_t kWarpBytes = 16'384;
  const uint64_t mean_items =
      args.offsets != nullptr ? args.num_items / args.num_arrays : std::min<uint64_t>(args.num_items, kTileItems);
  const uint64_t slots = kWarpBytes / std::max<uint64_t>(mean_items * sizeof(In), 1) / kSlotsAtOnce * kSlotsAtOnce;
  params.slots_of_warp = static_cast<int>(std::clamp<uint64_t>(slots, kSlotsAtOnce, kMaxSlotsOfWarp));
  cudaError_t error = CountSlots(static_cast<uint64_t>(params.slots_of_warp) * kRowReduceWarps, &params);
  if (error == cudaSuccess) {
    error = PrepareStates<typename Operator::Item>(NumStates(params.all_items), context, &params);
  }
  if (error != cudaSuccess) return error;
  return Launch(RowReduceKernel<In, Out, kOp>, params.each.num_tiles, kRowReduceWarps * kWarpThreads, context->stream,
                params);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ROW_REDUCE_CUH_
