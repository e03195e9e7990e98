// The kernel of a map, and its launch.
#ifndef PREFIXD_KERNELS_CUDA_MAP_CUH_
#define PREFIXD_KERNELS_CUDA_MAP_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"

namespace prefixd::cuda {

// F is the function: it has the types In and Out, kNumInputs, and Out operator()(In) or Out operator()(In, In).
template <class F>
struct MapParams {
  const typename F::In* in;
  const typename F::In* other;
  typename F::Out* out;
  uint64_t num_items;
  bool aligned;
  F function;
};

// A thread's items: the wider of the two vectors has 16 bytes.
template <class F>
inline constexpr int kMapItems = kVectorBytes /
                                 static_cast<int>(std::max(sizeof(typename F::In), sizeof(typename F::Out)));

// in or other may be out: a thread reads its items before it writes them.
template <class F>
__global__ void __launch_bounds__(kGlueThreads) MapKernel(const MapParams<F> p) {
  constexpr int kItems = kMapItems<F>;
  constexpr uint64_t kTileItems = uint64_t{kGlueThreads} * kItems;
  using In = Vector<typename F::In, kItems>;
  const auto apply = [&p](auto x, [[maybe_unused]] auto y) {
    if constexpr (F::kNumInputs == 2) return p.function(x, y);
    if constexpr (F::kNumInputs == 1) return p.function(x);
  };
  const uint64_t tile = blockIdx.x * kTileItems;
  if (p.aligned && p.num_items - tile >= kTileItems) {
    const uint64_t i = tile + uint64_t{threadIdx.x} * kItems;
    const In in = *reinterpret_cast<const In*>(p.in + i);
    In other = {};
    if constexpr (F::kNumInputs == 2) other = *reinterpret_cast<const In*>(p.other + i);
    Vector<typename F::Out, kItems> out;
#pragma unroll
    for (int j = 0; j < kItems; ++j) out.items[j] = apply(in.items[j], other.items[j]);
    *reinterpret_cast<Vector<typename F::Out, kItems>*>(p.out + i) = out;
    return;
  }
  const uint64_t end = p.num_items - tile < kTileItems ? p.num_items : tile + kTileItems;
  for (uint64_t i = tile + threadIdx.x; i < end; i += kGlueThreads) {
    p.out[i] = apply(p.in[i], F::kNumInputs == 2 ? p.other[i] : typename F::In{});
  }
}

template <class F>
cudaError_t LaunchMapOf(const MapArgs& args, const F& function, LaunchContext* context) {
  constexpr int kItems = kMapItems<F>;
  MapParams<F> params = {.in = static_cast<const typename F::In*>(args.in),
                         .other = static_cast<const typename F::In*>(args.other),
                         .out = static_cast<typename F::Out*>(args.out),
                         .num_items = args.num_items,
                         .aligned = false,
                         .function = function};
  using In = typename F::In;
  using Out = typename F::Out;
  params.aligned = HasVectors<In, kItems>(params.in) && HasVectors<Out, kItems>(params.out) &&
                   (F::kNumInputs == 1 || HasVectors<In, kItems>(params.other));
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(args.num_items, uint64_t{kGlueThreads} * kItems, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(MapKernel<F>, num_blocks, kGlueThreads, context->stream, params);
}

// In a .cu file each. Needs: args.op is kCast, or kCompareArrays without > and >=, or another operator of two arrays.
cudaError_t LaunchCast(const MapArgs& args, LaunchContext* context);
cudaError_t LaunchCompareArrays(const MapArgs& args, LaunchContext* context);
cudaError_t LaunchTwo(const MapArgs& args, LaunchContext* context);

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_MAP_CUH_
