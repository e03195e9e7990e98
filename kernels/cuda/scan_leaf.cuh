// The common parts of the scan kernels: their parameters, and the scan of a leaf that one warp holds in registers, with
// a run in each lane (kernels/NUMERICS.md).
//
// A partial tile needs no case of its own: nothing follows it, so nothing is computed from its value. The slots past
// the end may hold any item, and carry_out is the value up to the last item.
#ifndef PREFIXD_KERNELS_CUDA_SCAN_LEAF_CUH_
#define PREFIXD_KERNELS_CUDA_SCAN_LEAF_CUH_

#include <cstdint>

#include "kernels/association.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/scaled_run.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In, class Out>
struct ScanParams {
  const In* in;
  Out* out;  // May be in; so neither is __restrict__.
  uint64_t num_items;
  uint64_t skipped = 0;  // So many of the first items do not exist: in, out and num_items count them. In the ring only.
  uint32_t num_tiles;    // The number of tickets. Each is for a tile, or in the ring for several.
  Out init;
  Out neutral;  // Changes nothing in front of any element.
  const void* carry_in;
  void* carry_out;  // May be carry_in.
  bool exclusive;
  bool reverse;
  bool aligned;       // in and out can be moved run by run.
  uint32_t patience;  // As in LaunchContext.
  TileStates states;
};

// For arrays that stand one by one, each by itself or one that goes through tiles.
template <class In, class Out, Op kOp>
ScanParams<In, Out> ScanParamsOf(const ScanArgs& args, const LaunchContext& context) {
  ScanParams<In, Out> params = {.in = static_cast<const In*>(args.in),
                                .out = static_cast<Out*>(args.out),
                                .num_items = args.num_items,
                                .num_tiles = 0,
                                .init = args.init.As<Out>(),
                                .neutral = NeutralOf<kOp, Out>(),
                                .carry_in = args.carry_in,
                                .carry_out = args.carry_out,
                                .exclusive = args.kind == ScanKind::kExclusive,
                                .reverse = args.reverse,
                                .aligned = false,
                                .patience = context.patience,
                                .states = {}};
  params.aligned = !args.reverse && HasAlignedRuns(params.in) && HasAlignedRuns(params.out);
  if (args.num_arrays > 1 &&
      (args.num_items * sizeof(In) % alignof(Run<In>) != 0 || args.num_items * sizeof(Out) % alignof(Run<Out>) != 0)) {
    params.aligned = false;
  }
  return params;
}

// A carry is a result, unless the operator says what it is.
template <class Operator, class Out>
struct CarryTraits {
  using Type = Out;
};
template <class Operator, class Out>
requires requires { typename Operator::Carry; }
struct CarryTraits<Operator, Out> {
  using Type = typename Operator::Carry;
};

// What stands before the first item.
template <class Operator, class In, class Out>
__device__ auto LoadStart(const ScanParams<In, Out>& p) {
  using Carry = typename CarryTraits<Operator, Out>::Type;
  return p.carry_in != nullptr ? Operator::Load(*static_cast<const Carry*>(p.carry_in)) : Operator::Load(p.init);
}

template <class Operator, class In, class Out, class Item>
__device__ void StoreCarry(const ScanParams<In, Out>& p, Item item) {
  if constexpr (requires { typename Operator::Carry; }) {
    *static_cast<typename Operator::Carry*>(p.carry_out) = Canonical(item);
  } else {
    *static_cast<Out*>(p.carry_out) = Operator::Store(item);
  }
}

// The items of one array among all.
struct ArrayItems {
  uint64_t begin;
  uint64_t count;
};

template <class Params>
__device__ ArrayItems ItemsOf(const Params& p, uint64_t array) {
  if constexpr (requires { p.offsets; }) {
    if (p.offsets != nullptr) return {p.offsets[array], p.offsets[array + 1] - p.offsets[array]};
  }
  return {array * p.num_items, p.num_items};
}

// What a thread has of a tile, as items of the operator.
template <Op kOp, class In, class Out>
class TileItems {
 public:
  using Params = ScanParams<In, Out>;  // What kernels that use it take.

  __device__ void Load(const Params& p, const ArrayItems& array, uint64_t tile_begin, int num_valid) {
    LoadTile(TileView<const In>(p.in + array.begin, array.count, tile_begin, p.reverse), num_valid, In{}, p.aligned,
             elements_);
  }
  __device__ auto At(int row, int i) const { return Operator<kOp, Out>::Load(elements_[row].items[i]); }

 private:
  ThreadRuns<In> elements_;
};

// Joins the lane's run into its leaf. Each item of the run becomes the value of the run up to it. Returns what stands
// before the run in its leaf: the tree of the lanes before.
template <class Operator, class Item>
__device__ Item JoinRun(Item (&run)[kRunItems], Item neutral) {
#pragma unroll
  for (int i = 1; i < kRunItems; ++i) run[i] = Operator::Combine(run[i - 1], run[i]);
  const Item before = ShuffleFrom(WarpTrees<Operator>(run[kRunItems - 1]), LaneOfWarp() - 1);
  return LaneOfWarp() == 0 ? neutral : before;
}

// What stands before a leaf in its tile.
template <class Item>
struct LeafPrefix {
  Item before;  // The tree of the leaves before it.
  Item up_to;   // The join of the leaves before it. Not read for the first leaf.
};

// Each item of the run, as JoinRun left it, becomes the value of the array up to it.
template <class Operator, class Item>
__device__ void JoinArray(Item (&run)[kRunItems], Item before_run, Item before_leaf, const TilePrefix<Item>& tile) {
  if constexpr (Operator::kAnyOrder) {
    const Item before =
        Operator::Combine(Operator::Combine(tile.array, tile.group), Operator::Combine(before_leaf, before_run));
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) run[i] = Operator::Combine(before, run[i]);
  } else {
    if constexpr (requires { JoinAligned(run, before_run, before_leaf, tile); }) {
      if (JoinAligned(run, before_run, before_leaf, tile)) return;
    }
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      const Item in_leaf = Operator::Combine(before_run, run[i]);
      const Item in_group = Operator::Combine(tile.group, Operator::Combine(before_leaf, in_leaf));
      run[i] = Operator::Combine(tile.array, in_group);
    }
  }
}

// Makes inclusive values exclusive: moves them by one item. The first lane's first is the array's value up to the leaf.
template <class Operator, class Item>
__device__ void MoveByOne(Item (&run)[kRunItems], bool is_first_leaf, Item up_to_leaf, const TilePrefix<Item>& tile) {
  Item previous = ShuffleFrom(run[kRunItems - 1], LaneOfWarp() - 1);
  if (LaneOfWarp() == 0) {
    previous =
        Operator::Combine(tile.array, is_first_leaf ? tile.previous_tile : Operator::Combine(tile.group, up_to_leaf));
  }
#pragma unroll
  for (int i = kRunItems - 1; i > 0; --i) run[i] = run[i - 1];
  run[0] = previous;
}

// Writes carry_out if the run has the array's last item. run: its inclusive values in the array.
// first_item: the index in the array of the run's first item.
template <class Operator, class In, class Out, class Item>
__device__ void KeepCarry(const ScanParams<In, Out>& p, uint64_t first_item, const Item (&run)[kRunItems]) {
  if (p.carry_out == nullptr) return;
#pragma unroll
  for (int i = 0; i < kRunItems; ++i) {
    if (first_item + i == p.num_items - 1) {
      __threadfence();
      StoreCarry<Operator>(p, run[i]);
    }
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SCAN_LEAF_CUH_
