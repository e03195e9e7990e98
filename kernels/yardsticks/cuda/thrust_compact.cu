// Compact, strategy "thrust": thrust::copy_if of the indices; each kept index fetches its element. Waits for the
// stream. Two launches of CUB's kernels (for every 2^31 elements), and one that writes the count. Stable.
#include <thrust/copy.h>

#include <cstdint>
#include <limits>

#include "kernels/yardsticks/cuda/keeps.cuh"
#include "kernels/yardsticks/cuda/reduces.h"
#include "kernels/yardsticks/cuda/thrust.cuh"

namespace prefixd::cuda {
namespace {

template <class T>
struct KeepsItem {
  KeepParams<T> p;

  __device__ bool operator()(int64_t item) const { return p.Keeps(item); }
};

template <class T>
struct WriteItem {
  KeepParams<T> p;

  __device__ void operator()(int64_t position, int64_t item) const { p.Write(position, item); }
};

struct CountParams {
  uint64_t num_kept;
  uint64_t* count;
  uint64_t* h_num_kept;
};
__global__ void WriteCountKernel(const __grid_constant__ CountParams p) { *p.count = *p.h_num_kept = p.num_kept; }

}  // namespace

template <class T>
cudaError_t LaunchThrustCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                uint64_t* num_launches) {
  const auto params = MakeKeepParams<T>(args, h_num_kept);
  const auto num_items = static_cast<int64_t>(args.num_items);
  CountParams count = {0, args.count, h_num_kept};
  size_t max_bytes = 0;
  const cudaError_t error = RunThrust(context->stream, &max_bytes, [&](auto policy) {
    const auto out = thrust::make_tabulate_output_iterator(WriteItem<T>{params});
    const auto end = thrust::copy_if(policy, ThrustIndex(0), ThrustIndex(num_items), out, KeepsItem<T>{params});
    count.num_kept = end - out;
  });
  if (error != cudaSuccess) return error;
  constexpr uint64_t kPartItems = std::numeric_limits<int>::max();
  *num_launches = 1 + 2 * ((args.num_items + kPartItems - 1) / kPartItems);
  return Launch(WriteCountKernel, 1, 1, context->stream, count);
}

#define PREFIXD_INSTANTIATE(T) \
  template cudaError_t LaunchThrustCompact<T>(const CompactArgs&, uint64_t*, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
