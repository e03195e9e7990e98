// Reduce, strategies "two_pass" and "kahan": each of at most 512 blocks reduces a stretch of neighbouring tiles, then
// one block reduces their values. kahan does so with compensated sums (kahan.cuh), for floating point only.
//
// Cost: work n, traffic n; two launches, one for a single tile; depth n / 2^18 trees of a tile, one after the other,
// and one more. Barriers: two a tile.
// Source: Note and Save ("each block produces a partial result, then a second kernel reduces those"), which gives a
// block one item a thread, so that one block is too little for its second pass from 2^20 items on.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/yardsticks/cuda/kahan.cuh"
#include "kernels/yardsticks/cuda/reduce_items.cuh"
#include "kernels/yardsticks/cuda/reduces.h"

namespace prefixd::cuda {
namespace {

template <class T, class Item>
struct TwoPassParams : ReduceTileParams<T> {
  Item* values;  // One value for each block of the first pass.
  uint32_t num_values;

  __device__ uint32_t FirstTile(uint32_t block) const {
    return static_cast<uint32_t>(uint64_t{this->num_tiles} * block / gridDim.x);
  }
};

template <class Items, class T, class Item>
__global__ void __launch_bounds__(kReduceThreads) FirstPassKernel(const __grid_constant__ TwoPassParams<T, Item> p) {
  __shared__ Item s_items[kReduceThreads];
  const auto t = static_cast<int>(threadIdx.x);
  Item value = Items::Neutral(p.neutral);
  const uint32_t end = p.FirstTile(blockIdx.x + 1);
  for (uint32_t tile = p.FirstTile(blockIdx.x); tile < end; ++tile) {
    const Item item = p.template Load<Items>(uint64_t{tile} * kReduceThreads + threadIdx.x);
    value = Items::Combine(value, WarpShuffleTree::Run<Items>(item, s_items, t));
    __syncthreads();
  }
  if (t != 0) return;
  if (gridDim.x > 1) {
    p.values[blockIdx.x] = value;
  } else {
    p.template Finish<Items>(value);
  }
}

template <class Items, class T, class Item>
__global__ void __launch_bounds__(kReduceThreads) SecondPassKernel(const __grid_constant__ TwoPassParams<T, Item> p) {
  __shared__ Item s_items[kReduceThreads];
  const auto t = static_cast<int>(threadIdx.x);
  Item item = threadIdx.x < p.num_values ? p.values[t] : Items::Neutral(p.neutral);
  item = WarpShuffleTree::Run<Items>(item, s_items, t);
  if (t == 0) p.template Finish<Items>(item);
}

template <class Items, class T>
cudaError_t LaunchTwoPasses(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  using Item = typename Items::Item;
  TwoPassParams<T, Item> params = {MakeReduceTileParams<T>(args), nullptr, 0};
  cudaError_t error = CountTiles(args.num_items, kReduceThreads, &params.num_tiles);
  if (error != cudaSuccess) return error;
  params.num_values = std::min<uint32_t>(params.num_tiles, kReduceThreads);
  void* d_values = nullptr;
  error = context->scratch.Get(context->stream, params.num_values * sizeof(Item), &d_values);
  if (error != cudaSuccess) return error;
  params.values = static_cast<Item*>(d_values);
  *num_launches = 1;
  error = Launch(FirstPassKernel<Items, T, Item>, params.num_values, kReduceThreads, context->stream, params);
  if (error != cudaSuccess || params.num_values == 1) return error;
  *num_launches = 2;
  return Launch(SecondPassKernel<Items, T, Item>, 1, kReduceThreads, context->stream, params);
}

}  // namespace

template <class T>
cudaError_t LaunchTwoPassReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  if (args.algorithm.strategy == Strategy::kKahan) {
    if constexpr (kIsFloating<T>) {
      if (args.op == Op::kSum) return LaunchTwoPasses<KahanItems<T>, T>(args, context, num_launches);
    }
    return cudaErrorInvalidValue;
  }
  return VisitTextbookOp(args.op, [&](auto op) {
    return LaunchTwoPasses<ReduceItems<decltype(op)::kValue, T>, T>(args, context, num_launches);
  });
}

#define PREFIXD_INSTANTIATE(T) \
  template cudaError_t LaunchTwoPassReduce<T>(const ReduceArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
