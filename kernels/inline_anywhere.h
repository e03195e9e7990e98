// PREFIXD_INLINE_ANYWHERE: for functions that the CPU's loops and the kernels share. They are inlined by force, so that
// each has the instructions of the file that it is in.
#ifndef PREFIXD_KERNELS_INLINE_ANYWHERE_H_
#define PREFIXD_KERNELS_INLINE_ANYWHERE_H_

#if defined(__CUDACC__)
#define PREFIXD_INLINE_ANYWHERE __host__ __device__ __forceinline__
#else
#define PREFIXD_INLINE_ANYWHERE __attribute__((always_inline)) inline
#endif

#endif  // PREFIXD_KERNELS_INLINE_ANYWHERE_H_
