// Reduce, strategy "cub": cub::DeviceReduce::Reduce; for min and max, which return an index, ArgMin and ArgMax. One
// launch if one block is enough, else two. The states need no launch: CUB's last kernel joins them as it writes.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_REDUCE_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_REDUCE_CUH_

#include <cstddef>
#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <limits>

#include "kernels/yardsticks/cub/cub.h"
#include "kernels/yardsticks/cub/cub_parts.cuh"

namespace prefixd::cuda {

struct CubStates {
  ReduceState init;
  const ReduceState* state_in;
  ReduceState* state_out;  // May be state_in.

  __device__ ReduceState Start() const { return state_in != nullptr ? *state_in : init; }
};

// Takes the reduction of the elements, and joins it with the start.
template <class Items, class Out>
struct JoinWithStart {
  CubStates states;

  __device__ void operator()(typename Items::Item value) const {
    const ReduceState start = states.Start();
    const auto joined = Items::Combine(Items::Load(ValueAs<Out>(start.value)), value);
    *states.state_out = {ValueOf(Items::Store(joined)), start.position};
  }
};

// Takes the index of the first extremum, and joins its element with the start.
template <Op kOp, class T>
struct JoinIndexWithStart {
  CubStates states;
  const T* in;
  uint64_t first_item;

  __device__ void operator()(int64_t index) const {
    const auto item = Operator<kOp, T>::Load(in[index]);
    *states.state_out = BetterOf<kOp, T>(states.Start(), item, first_item + static_cast<uint64_t>(index) + 1);
  }
};
struct Ignore {
  template <class T>
  __device__ void operator()(const T&) const {}
};

// For an empty array, for which ArgMin and ArgMax launch nothing.
template <class T>
__global__ void CopyStateKernel(const CubStates states) {
  const ReduceState start = states.Start();
  *states.state_out = {ValueOf(Canonical(ValueAs<T>(start.value))), start.position};
}

// Runs algorithm(d_temp, temp_bytes, n), a reduction, for num_items. It counts two launches if CUB asks for more memory
// than for one element, else one. CUB cuts arrays that are longer than an int at multiples of 4,096.
template <class Algorithm>
cudaError_t RunCubReduce(uint64_t num_items, LaunchContext* context, Algorithm&& algorithm, uint64_t* num_launches) {
  size_t least_bytes = 0;
  cudaError_t error = algorithm(nullptr, least_bytes, 1);
  if (error != cudaSuccess) return error;
  return RunCub(context, [&](void* d_temp, size_t& temp_bytes) {
    error = algorithm(d_temp, temp_bytes, static_cast<int64_t>(num_items));
    *num_launches = temp_bytes > least_bytes ? 2 : 1;
    return error;
  });
}

template <Op kOp, class T>
cudaError_t LaunchCubExtremum(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  const CubStates states = {args.init, args.state_in, args.state_out};
  if (args.num_items == 0) {
    *num_launches = 1;
    return Launch(CopyStateKernel<T>, 1, 1, context->stream, states);
  }
  const auto* in = static_cast<const T*>(args.in);
  const auto reduce = [&](void* d_temp, size_t& temp_bytes, int64_t num_items) {
    const auto d_in = CubInput<CubItems<kOp, T>, 1>(in);
    const Sink d_value{Ignore{}};
    const Sink d_index{JoinIndexWithStart<kOp, T>{states, in, args.first_item}};
    if constexpr (kOp == Op::kMin) {
      return cub::DeviceReduce::ArgMin(d_temp, temp_bytes, d_in, d_value, d_index, num_items, context->stream);
    } else {
      return cub::DeviceReduce::ArgMax(d_temp, temp_bytes, d_in, d_value, d_index, num_items, context->stream);
    }
  };
  const cudaError_t error = RunCubReduce(args.num_items, context, reduce, num_launches);
  constexpr uint64_t kPartItems = std::numeric_limits<int>::max() / 4096 * uint64_t{4096};
  *num_launches *= (args.num_items + kPartItems - 1) / kPartItems;
  return error;
}

template <Op kOp, class In, class Out>
cudaError_t LaunchCubReduceOf(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  using Items = CubItems<kOp, Out>;
  using Item = typename Items::Item;
  const auto reduce = [&](void* d_temp, size_t& temp_bytes, int64_t num_items) {
    const auto d_in = CubInput<Items, 1>(static_cast<const In*>(args.in));
    const Sink d_out{JoinWithStart<Items, Out>{{args.init, args.state_in, args.state_out}}};
    const auto neutral = static_cast<Item>(Neutral(args.op, args.output()).template As<Out>());
    return cub::DeviceReduce::Reduce(d_temp, temp_bytes, d_in, d_out, num_items, CubOperator<kOp, Item>(), neutral,
                                     context->stream);
  };
  return RunCubReduce(args.num_items, context, reduce, num_launches);
}

template <class In, class Out>
cudaError_t LaunchCubReduce(const ReduceArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitOp<Out>(args.op, [&](auto tag) -> cudaError_t {
    constexpr Op kOp = decltype(tag)::kValue;
    if constexpr (!kCubServes(kDTypeOf<In>, kDTypeOf<Out>, kOp)) {
      FatalValue("LaunchCubReduce", kOp);
    } else if constexpr (kHasPosition<kOp>) {
      return LaunchCubExtremum<kOp, Out>(args, context, num_launches);
    } else {
      using Result = WrappingType<Out, kOp>;
      using Element = std::conditional_t<std::is_same_v<In, Out>, Result, In>;
      return LaunchCubReduceOf<kOp, Element, Result>(args, context, num_launches);
    }
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_REDUCE_CUH_
