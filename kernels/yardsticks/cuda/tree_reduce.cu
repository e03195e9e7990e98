// Reduce, strategies "tree_interleaved", "tree_sequential" and "warp_shuffle": a tree over the items of a block, then
// over the values of the blocks, again and again until there is one block.
//
// Cost: work n, depth log n, traffic n; log2(n) / 9 launches, rounded up, for blocks of 512 items. Barriers: ten a
// block for the trees in shared memory, one for the shuffles. Banks: reduce_items.cuh.
// Source: Note and Save, whose trace of [2,4,6,8,1,3,5,7] is interleaved, whose reduce_sum is sequential, and whose
// reduce_sum_warp_shuffle shuffles; Hadwiger ("vector reduction"). Note and Save traces one addressing and codes the
// other without a word on what differs: the sequential one needs an operator that commutes. It leaves the second kernel
// to the reader.
#include <cstdint>
#include <utility>

#include "kernels/yardsticks/cuda/reduce_items.cuh"
#include "kernels/yardsticks/cuda/reduces.h"

namespace prefixd::cuda {
namespace {

template <class T, class Item>
struct TreeParams : ReduceTileParams<T> {
  const Item* values_in;  // One value for each block of the launch before. Null: the elements are reduced.
  uint64_t num_values;
  Item* values_out;  // Null: this block is the last.
};

template <class BlockTree, class Items, class T, class Item>
__global__ void __launch_bounds__(kReduceThreads) TreeReduceKernel(const __grid_constant__ TreeParams<T, Item> p) {
  __shared__ Item s_items[kReduceThreads];
  const auto t = static_cast<int>(threadIdx.x);
  const uint64_t i = uint64_t{blockIdx.x} * kReduceThreads + threadIdx.x;
  Item item = Items::Neutral(p.neutral);
  if (p.values_in == nullptr) {
    item = p.template Load<Items>(i);
  } else if (i < p.num_values) {
    item = p.values_in[i];
  }
  item = BlockTree::template Run<Items>(item, s_items, t);
  if (t != 0) return;
  if (p.values_out != nullptr) {
    p.values_out[blockIdx.x] = item;
  } else {
    p.template Finish<Items>(item);
  }
}

template <class BlockTree, class Items, class T>
cudaError_t LaunchTree(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  using Item = typename Items::Item;
  TreeParams<T, Item> params = {MakeReduceTileParams<T>(args), nullptr, args.num_items, nullptr};
  cudaError_t error = CountTiles(args.num_items, kReduceThreads, &params.num_tiles);
  if (error != cudaSuccess) return error;
  // Room for the values of this launch, and for those of the next, a 512th as many.
  void* d_scratch = nullptr;
  const uint64_t num_values = uint64_t{params.num_tiles} + params.num_tiles / kReduceThreads + 1;
  error = context->scratch.Get(context->stream, num_values * sizeof(Item), &d_scratch);
  if (error != cudaSuccess) return error;
  Item* d_values = static_cast<Item*>(d_scratch);
  Item* d_next = d_values + params.num_tiles;
  for (*num_launches = 1;; ++*num_launches) {
    params.values_out = params.num_tiles > 1 ? d_values : nullptr;
    error =
        Launch(TreeReduceKernel<BlockTree, Items, T, Item>, params.num_tiles, kReduceThreads, context->stream, params);
    if (error != cudaSuccess || params.num_tiles == 1) return error;
    params.values_in = d_values;
    params.num_values = params.num_tiles;
    error = CountTiles(params.num_values, kReduceThreads, &params.num_tiles);
    if (error != cudaSuccess) return error;
    std::swap(d_values, d_next);
  }
}

}  // namespace

template <class T>
cudaError_t LaunchTreeReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTextbookOp(args.op, [&](auto op) {
    using Items = ReduceItems<decltype(op)::kValue, T>;
    switch (args.algorithm.strategy) {
      case Strategy::kTreeInterleaved:
        return LaunchTree<TreeInterleaved, Items, T>(args, context, num_launches);
      case Strategy::kTreeSequential:
        return LaunchTree<TreeSequential, Items, T>(args, context, num_launches);
      case Strategy::kWarpShuffle:
        return LaunchTree<WarpShuffleTree, Items, T>(args, context, num_launches);
      default:
        FatalValue("LaunchTreeReduce", args.algorithm.strategy);
    }
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchTreeReduce<T>(const ReduceArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
