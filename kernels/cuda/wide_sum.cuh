// Sums in more precision than their elements': of f32 in f64, of f64 in pairs of a sum and its error. An operator for
// the kernels of all sums, which read and write what they do for the plain ones.
#ifndef PREFIXD_KERNELS_CUDA_WIDE_SUM_CUH_
#define PREFIXD_KERNELS_CUDA_WIDE_SUM_CUH_

#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/scan.cuh"
#include "kernels/cuda/warp_join.cuh"
#include "kernels/wide_sum.h"

namespace prefixd::cuda {

template <>
struct Operator<Op::kWideSum, float> {
  using Item = double;
  using Carry = double;
  static constexpr bool kAnyOrder = false;

  static __device__ Item Load(float element) { return element; }
  static __device__ Item Load(Carry carry) { return carry; }
  static __device__ float Store(Item item) { return Canonical(static_cast<float>(item)); }
  static __device__ Item Combine(Item left, Item right) { return left + right; }

  static __device__ Item FromState(const ReduceState& state) { return ValueAs<double>(state.value); }
  static __device__ ReduceState ToState(Item item, uint64_t position) { return {ValueOf(Canonical(item)), position}; }
};

template <>
struct Operator<Op::kWideSum, double> {
  using Item = Compensated<double>;
  using Carry = Item;
  static constexpr bool kAnyOrder = false;

  static __device__ Item Load(double element) { return CompensatedOf(element); }
  static __device__ Item Load(Carry carry) { return carry; }
  static __device__ double Store(Item item) { return Canonical(Rounded(item)); }
  static __device__ Item Combine(Item left, Item right) { return Add(left, right); }

  static __device__ Item FromState(const ReduceState& state) { return {ValueAs<double>(state.value), state.second}; }
  static __device__ ReduceState ToState(Item item, uint64_t position) {
    const Item settled = Settled(item);
    return {ValueOf(settled.sum), position, settled.error};
  }
};

template <class T>
cudaError_t LaunchWideScan(const ScanArgs& args, LaunchContext* context) {
  return LaunchScanOf<T, T, Op::kWideSum>(args, context);
}

template <class T>
cudaError_t LaunchWideReduce(const ReduceArgs& args, LaunchContext* context) {
  return LaunchReduceOf<T, T, Op::kWideSum>(args, context);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_WIDE_SUM_CUH_
