// The common parts of Thrust's algorithms: where they run, what they read and write, and how their exceptions become
// errors.
//
// Thrust runs CUB's kernels (../cub). Here it runs as a caller of thrust:: gets it, with functors and iterators. Its
// memory comes from the lane's pool, in stream order. reduce and copy_if return their result to the host, so they wait
// for the stream, whatever the policy says; scans don't. Source: Note and Save, which says that Thrust has a "cleaner
// API" for the same speed, but not what waits.
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

// Thrust asks at once for all the memory that an algorithm needs.
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

// The operator on elements: Thrust has no one place where elements are loaded or stored, so each step converts them.
template <class Operator, class T>
struct CombineElements {
  __device__ T operator()(T left, T right) const {
    return Operator::Store(Operator::Combine(Operator::Load(left), Operator::Load(right)));
  }
};

using ThrustIndex = thrust::counting_iterator<int64_t>;

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_THRUST_CUH_
