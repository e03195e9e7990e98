// What benchmarks on a card fill their arrays with.
#ifndef PREFIXD_TESTS_BENCH_FILL_CUH_
#define PREFIXD_TESTS_BENCH_FILL_CUH_

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"
#include "tests/bench/cuda_bench.h"

namespace prefixd {

template <class T>
__global__ void Fill(T* out, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    // Around 0: half of the elements of signed types are positive, and sums stay finite.
    if constexpr (kIsFloating<T>) {
      out[i] = static_cast<T>(static_cast<Accumulator<T>>(static_cast<int64_t>(z) >> 40) * 0x1p-23f);
    } else {
      out[i] = static_cast<T>(z);
    }
  }
}

// A mask keeps half of the elements, give or take a millionth.
__device__ inline bool IsKept(size_t i) { return (i + 1) * 0x9e3779b97f4a7c15 >> 63; }

// A byte for each element.
static __global__ void FillByteMask(uint8_t* out, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x) {
    out[i] = IsKept(i);
  }
}
// The same as a bit for each of 8 * num_bytes elements.
static __global__ void FillBitMask(uint8_t* out, size_t num_bytes) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < num_bytes; i += size_t{gridDim.x} * blockDim.x) {
    unsigned bits = 0;
    for (int bit = 0; bit < 8; ++bit) bits |= unsigned{IsKept(8 * i + bit)} << bit;
    out[i] = static_cast<uint8_t>(bits);
  }
}

template <class T>
DeviceArray<T> AllocateRandom(size_t n) {
  auto array = Allocate<T>(n);
  Fill<<<2048, 256>>>(array.get(), n);
  Check(cudaDeviceSynchronize());
  return array;
}

}  // namespace prefixd

#endif  // PREFIXD_TESTS_BENCH_FILL_CUH_
