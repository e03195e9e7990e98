// What reduce strategy "kahan" combines: a sum and the error made so far, which is added back at the end.
//
// The sum of two is exactly a rounded sum and a rest (TwoSum, 6 operations in place of one). The rests are added up
// beside the sum. So the result is right to an ulp, and some n ulp^2 of the sum of magnitudes; but a state carries only
// the sum to the next chunk. Sums that are not finite have no rest. Contraction to fused multiply-adds and
// -use_fast_math would remove the rests, so the code is compiled without them.
// Source: Kahan 1965; Neumaier 1974; Note and Save, which names it in its advice on precision, and no more.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_KAHAN_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_KAHAN_CUH_

#include <cstdint>

#include "kernels/cuda/operators.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

template <class T>
struct KahanItems {
  struct Item {
    T sum;
    T error;
  };

  static __device__ Item Load(T element, uint64_t /*position*/) { return {element, 0}; }
  static __device__ Item Neutral(T neutral) { return {neutral, 0}; }
  static __device__ Item Combine(Item left, Item right) {
    const T sum = left.sum + right.sum;
    const T right_part = sum - left.sum;
    const T rest = (left.sum - (sum - right_part)) + (right.sum - right_part);
    return {sum, left.error + right.error + rest};
  }
  static __device__ ReduceState Join(const ReduceState& start, Item item) {
    item = Combine(Load(ValueAs<T>(start.value), 0), item);
    const bool has_rest = item.error != 0 && item.sum - item.sum == 0 && item.error - item.error == 0;
    return {ValueOf(Canonical(has_rest ? item.sum + item.error : item.sum)), start.position};
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_KAHAN_CUH_
