// Compact, strategy "atomic_counter": every element that is kept takes the next place from one counter.
//
// NOT STABLE: the kept elements stand in the order in which their threads reach the counter, and this order differs
// from run to run. So it is only there for comparison.
// Cost: work n, one launch, traffic n and what is kept. The L2 cache does atomics on one address one after the other.
// The last block to leave writes the count, and clears the counter for the next launch.
// Source: Note and Save, which warns of its speed and does not say that it loses the order.
#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/yardsticks/cuda/keeps.cuh"
#include "kernels/yardsticks/cuda/reduces.h"

namespace prefixd::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kCompactThreads) AtomicCounterKernel(const __grid_constant__ KeepParams<T> p) {
  const uint64_t i = uint64_t{blockIdx.x} * kCompactThreads + threadIdx.x;
  if (i < p.num_items && p.Keeps(i)) {
    p.Write(DeviceAtomic64(p.states.control->sum).fetch_add(1, ::cuda::memory_order_relaxed), i);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  TileControl& control = *p.states.control;
  const uint32_t before = DeviceAtomic32(control.blocks_left).fetch_add(1, ::cuda::memory_order_acq_rel);
  if (before != gridDim.x - 1) return;
  *p.count = *p.h_num_kept = control.sum;
  control.sum = 0;
  control.blocks_left = 0;
}

}  // namespace

template <class T>
cudaError_t LaunchAtomicCounterCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                       uint64_t* num_launches) {
  auto params = MakeKeepParams<T>(args, h_num_kept);
  params.states.control = context->d_control;
  const cudaError_t error = CountTiles(args.num_items, kCompactThreads, &params.num_tiles);
  if (error != cudaSuccess) return error;
  *num_launches = 1;
  return Launch(AtomicCounterKernel<T>, params.num_tiles, kCompactThreads, context->stream, params);
}

#define PREFIXD_INSTANTIATE(T) \
  template cudaError_t LaunchAtomicCounterCompact<T>(const CompactArgs&, uint64_t*, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
