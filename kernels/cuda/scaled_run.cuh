// A run of scaled exponentials joins the array.
#ifndef PREFIXD_KERNELS_CUDA_SCALED_RUN_CUH_
#define PREFIXD_KERNELS_CUDA_SCALED_RUN_CUH_

#include "kernels/association.h"
#include "kernels/cuda/look_back.cuh"
#include "kernels/log_add_exp.h"

namespace prefixd::cuda {

// JoinArray, if all that is added is near enough to be brought to one exponent, so that each addition takes one
// instruction in place of nine. Else returns false, and changes nothing.
//
// The sums have the bits that they have without: a power of two that all of what is added is multiplied by changes no
// bit but where something is denormal, which is too far off to be brought here. An item of -infinity becomes 0. Results
// have the same bits, because the exponent of a sum is added to its exponent exactly. Items may be smaller than Combine
// wants them: what is left for them is to be stored, or settled.
template <class T>
__device__ bool JoinAligned(Scaled<T> (&run)[kRunItems], Scaled<T> before_run, Scaled<T> before_leaf,
                            const TilePrefix<Scaled<T>>& tile) {
  using Function = LogAddExpOf<T>;
  constexpr T kSpread = sizeof(T) == 4 ? 25 : 250;
  constexpr T kLargest = sizeof(T) == 4 ? T(0x1p19) : T(0x1p48);
  // Exponents do not fall along a run, unless there is a NaN, whose exponent is anything.
  const T largest = max(max(max(run[kRunItems - 1].exponent, before_run.exponent), before_leaf.exponent),
                        max(tile.group.exponent, tile.array.exponent));
  const T least = largest - kSpread;
  const auto is_near = [&](T exponent) { return exponent >= least || exponent == -T(INFINITY); };
  const bool are_near = abs(largest) < kLargest && run[kRunItems - 1].sum == run[kRunItems - 1].sum &&
                        run[0].exponent >= least && is_near(before_run.exponent) && is_near(before_leaf.exponent) &&
                        is_near(tile.group.exponent) && is_near(tile.array.exponent);
  if (!are_near) return false;
  const auto aligned = [&](Scaled<T> item) { return item.sum * Function::PowerOf16(item.exponent - largest); };
  const T in_leaf = aligned(before_run), in_tile = aligned(before_leaf);
  const T in_group = aligned(tile.group), in_array = aligned(tile.array);
#pragma unroll
  for (int i = 0; i < kRunItems; ++i) {
    const T sum = Function::AddProduct(in_leaf, run[i].sum, Function::PowerOf16(run[i].exponent - largest));
    run[i] = {in_array + (in_group + (in_tile + sum)), largest};
  }
  return true;
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SCALED_RUN_CUH_
