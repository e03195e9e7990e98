// Reduce, strategy "thrust": thrust::reduce; for min and max, over pairs of a value and its position. Waits for the
// stream.
// One launch of CUB's kernels for what one block can do, else two, and one that joins the result with the start.
#include <thrust/reduce.h>

#include <cstdint>

#include "kernels/yardsticks/cuda/reduce_items.cuh"
#include "kernels/yardsticks/cuda/reduces.h"
#include "kernels/yardsticks/cuda/thrust.cuh"

namespace prefixd::cuda {
namespace {

// What is reduced: elements, for min and max with their positions.
template <Op kOp, class T>
struct ThrustItems {
  using Item = T;
  static Item Neutral(T neutral) { return neutral; }
  static __device__ Item Load(T element, uint64_t /*position*/) { return element; }
  static __device__ Item Combine(Item left, Item right) { return CombineElements<Operator<kOp, T>, T>{}(left, right); }
  static __device__ ReduceState Join(const ReduceState& start, Item item) {
    return ReduceItems<kOp, T>::Join(start, ReduceItems<kOp, T>::Load(item, 0));
  }
};
template <Op kOp, class T>
requires(kHasPosition<kOp>) struct ThrustItems<kOp, T> {
  struct Item {
    T value;
    uint64_t position;
  };
  using Pairs = ReduceItems<kOp, T>;

  static Item Neutral(T neutral) { return {neutral, ReduceState::kNothing}; }
  static __device__ Item Load(T element, uint64_t position) { return {element, position}; }
  static __device__ Item Combine(Item left, Item right) {
    const auto better =
        Pairs::Combine(Pairs::Load(left.value, left.position), Pairs::Load(right.value, right.position));
    return better.position == left.position ? left : right;
  }
  static __device__ ReduceState Join(const ReduceState& start, Item item) {
    return Pairs::Join(start, Pairs::Load(item.value, item.position));
  }
};

template <class Items, class T>
struct LoadItem {
  ReduceTileParams<T> p;

  __device__ typename Items::Item operator()(int64_t i) const { return Items::Load(p.in[i], p.first_item + i + 1); }
};

template <class Items>
struct CombineItems {
  using Item = typename Items::Item;
  __device__ Item operator()(Item left, Item right) const { return Items::Combine(left, right); }
};

template <class T, class Item>
struct ThrustFinishParams : ReduceTileParams<T> {
  Item item;
};
template <class Items, class T, class Item>
__global__ void ThrustFinishKernel(const __grid_constant__ ThrustFinishParams<T, Item> p) {
  p.template Finish<Items>(p.item);
}

template <class Items, class T>
cudaError_t LaunchThrustReduceOf(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  ThrustFinishParams<T, typename Items::Item> params = {MakeReduceTileParams<T>(args), {}};
  const auto neutral = Items::Neutral(params.neutral);
  const auto in = thrust::make_transform_iterator(ThrustIndex(0), LoadItem<Items, T>{params});
  const auto end = in + static_cast<int64_t>(args.num_items);
  size_t max_bytes = 0;
  const cudaError_t error = RunThrust(context->stream, &max_bytes, [&](auto policy) {
    params.item = thrust::reduce(policy, in, end, neutral, CombineItems<Items>{});
  });
  if (error != cudaSuccess) return error;
  // CUB asks for memory, for the values of its blocks, only where it takes two launches.
  constexpr size_t kOneLaunchBytes = 256;
  *num_launches = args.num_items == 0 ? 1 : max_bytes > kOneLaunchBytes ? 3 : 2;
  return Launch(ThrustFinishKernel<Items, T, typename Items::Item>, 1, 1, context->stream, params);
}

}  // namespace

template <class T>
cudaError_t LaunchThrustReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTextbookOp(args.op, [&](auto op) {
    return LaunchThrustReduceOf<ThrustItems<decltype(op)::kValue, T>, T>(args, context, num_launches);
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchThrustReduce<T>(const ReduceArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
