// What the kernels of the glue share. A thread has one vector, as in difference.cu.
#ifndef PREFIXD_KERNELS_CUDA_GLUE_CUH_
#define PREFIXD_KERNELS_CUDA_GLUE_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/tile_io.cuh"
#include "kernels/types.h"

namespace prefixd::cuda {

inline constexpr int kGlueThreads = 256;
inline constexpr int kVectorBytes = 16;

// Whether a thread may load or store Vector<T, kItems>s of an array.
template <class T, int kItems>
bool HasVectors(const T* array) {
  return reinterpret_cast<uintptr_t>(array) % alignof(Vector<T, kItems>) == 0;
}

// The bits of T, where its values do not matter.
template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// For what gives signed and unsigned integers the same bits.
template <class T>
using BitsOrFloat = std::conditional_t<kIsFloating<T>, T, BitsOf<T>>;

// The type to compute in. Integers wrap round, at least in 32 bits: narrower ones would become signed, and overflow.
template <class T>
using Wraps =
    std::conditional_t<kIsFloating<T>, Accumulator<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_GLUE_CUH_
