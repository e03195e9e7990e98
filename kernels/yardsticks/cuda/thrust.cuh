// What the algorithms of Thrust have in common: where they run, what they read and write, and their exceptions as
// errors.
//
// Thrust runs CUB's kernels (../cub): here it is what a caller of thrust:: gets, functors, iterators and all. Its
// memory comes from the lane's pool, in stream order. What it returns, it returns to the host: reduce and copy_if wait
// for the stream, whatever the policy says; scans don't. Source: Note and Save, which says that Thrust has a
// "cleaner API" for the same speed, but not what waits.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_THRUST_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_THRUST_CUH_

#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/system_error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

#include "kernels/cuda/launch.h"

namespace prefixd::cuda {

// Thrust asks for all that an algorithm needs at once.
class ThrustMemory {
 public:
  using value_type = char;
  ThrustMemory(cudaStream_t stream, size_t* max_bytes) : stream_(stream), max_bytes_(max_bytes) {}

  char* allocate(std::ptrdiff_t num_bytes) {
    void* d_memory = nullptr;
    if (AllocateOn(stream_, num_bytes, &d_memory) != cudaSuccess) throw std::bad_alloc();
    *max_bytes_ = std::max<size_t>(*max_bytes_, num_bytes);
    return static_cast<char*>(d_memory);
  }
  void deallocate(char* d_memory, size_t) { cudaFreeAsync(d_memory, stream_); }

 private:
  cudaStream_t stream_;
  size_t* max_bytes_;
};

// Calls algorithm(policy). *max_bytes: the most memory that it asked for at a time.
template <class Algorithm>
cudaError_t RunThrust(cudaStream_t stream, size_t* max_bytes, Algorithm&& algorithm) {
  *max_bytes = 0;
  try {
    ThrustMemory memory(stream, max_bytes);
    algorithm(thrust::cuda::par_nosync(memory).on(stream));
    return cudaSuccess;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (const thrust::system_error& error) {
    return static_cast<cudaError_t>(error.code().value());
  }
}

// The operator on elements as they are: Thrust has no place where all are loaded, or stored.
template <class Operator, class T>
struct CombineElements {
  __device__ T operator()(T left, T right) const {
    return Operator::Store(Operator::Combine(Operator::Load(left), Operator::Load(right)));
  }
};

using ThrustIndex = thrust::counting_iterator<int64_t>;

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_THRUST_CUH_
