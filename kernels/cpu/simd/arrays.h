// Reduces of the arrays of a part, one after the other.
#ifndef PREFIXD_KERNELS_CPU_SIMD_ARRAYS_H_
#define PREFIXD_KERNELS_CPU_SIMD_ARRAYS_H_

#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/vector.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Sets a result for each array: of those with items reduce(array), a part of the elements of one, else *empty.
template <class In, class Out, class Reduce>
PREFIXD_INLINE void ReduceEach(const ScanPart& part, const PartArrays& arrays, const void* empty, Reduce reduce) {
  ScanPart array = part;
  for (uint64_t i = 0; i < arrays.num_arrays; ++i) {
    array.num_items = arrays.offsets == nullptr ? arrays.length : arrays.offsets[i + 1] - arrays.offsets[i];
    Out result;
    if (array.num_items == 0) {
      __builtin_memcpy(&result, empty, sizeof(result));
    } else {
      result = reduce(array);
    }
    static_cast<Out*>(part.out)[i] = result;
    array.in = static_cast<const In*>(array.in) + array.num_items;
    array.next = array.in;
  }
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_ARRAYS_H_
