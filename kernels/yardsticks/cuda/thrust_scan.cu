// Scan, strategy "thrust": thrust::inclusive_scan and exclusive_scan. Two launches of CUB's kernels, a third for the
// carry if it is wanted, and then a fourth, a copy, if the scan is exclusive and in place. Traffic: 2n.
#include <thrust/scan.h>

#include <cstdint>

#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"
#include "kernels/yardsticks/cuda/thrust.cuh"

namespace prefixd::cuda {
namespace {

template <class T>
struct LoadAt {
  TileParams<T> p;

  __device__ T operator()(int64_t i) const { return p.in[p.At(i)]; }
};

// Thrust takes a start from the host only; this start is joined where the results are written.
template <class Operator, class T>
struct StoreBehindStart {
  TileParams<T> p;

  __device__ void operator()(int64_t i, T value) const {
    p.out[p.At(i)] = CombineElements<Operator, T>{}(p.Start(), value);
  }
};

// Computes the carry from the last result and, if the scan is exclusive, the last element.
template <class T>
struct ThrustCarryParams : TileParams<T> {
  const T* last_in;
};
template <class Operator, class T>
__global__ void ThrustCarryKernel(const __grid_constant__ ThrustCarryParams<T> p) {
  auto value = Operator::Load(p.num_items == 0 ? p.Start() : p.out[p.At(p.num_items - 1)]);
  if (p.num_items > 0 && p.exclusive) value = Operator::Combine(value, Operator::Load(*p.last_in));
  *p.carry_out = Operator::Store(value);
}

template <class Operator, class T>
cudaError_t LaunchThrustScanOf(const TileParams<T>& p, LaunchContext* context, uint64_t* num_launches) {
  const cudaStream_t stream = context->stream;
  *num_launches = 0;
  const T* d_last = nullptr;
  if (p.num_items > 0) {
    const uint64_t last = p.reverse ? 0 : p.num_items - 1;
    d_last = p.in + last;
    if (p.exclusive && p.in == p.out && p.carry_out != nullptr) {
      void* d_copy = nullptr;
      cudaError_t error = context->scratch.Get(stream, sizeof(T), &d_copy);
      if (error != cudaSuccess) return error;
      error = cudaMemcpyAsync(d_copy, d_last, sizeof(T), cudaMemcpyDeviceToDevice, stream);
      if (error != cudaSuccess) return error;
      d_last = static_cast<const T*>(d_copy);
      ++*num_launches;
    }
    const auto in = thrust::make_transform_iterator(ThrustIndex(0), LoadAt<T>{p});
    const auto out = thrust::make_tabulate_output_iterator(StoreBehindStart<Operator, T>{p});
    const auto end = in + static_cast<int64_t>(p.num_items);
    size_t max_bytes = 0;
    const cudaError_t error = RunThrust(stream, &max_bytes, [&](auto policy) {
      if (p.exclusive) {
        thrust::exclusive_scan(policy, in, end, out, p.neutral, CombineElements<Operator, T>{});
      } else {
        thrust::inclusive_scan(policy, in, end, out, CombineElements<Operator, T>{});
      }
    });
    if (error != cudaSuccess) return error;
    *num_launches += 2;
  }
  if (p.carry_out == nullptr) return cudaSuccess;
  ++*num_launches;
  return Launch(ThrustCarryKernel<Operator, T>, 1, 1, stream, ThrustCarryParams<T>{p, d_last});
}

}  // namespace

template <class T>
cudaError_t LaunchThrustScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTextbookOp(args.op, [&](auto op) {
    using Operator = Operator<decltype(op)::kValue, T>;
    return LaunchThrustScanOf<Operator>(MakeTileParams<T>(args), context, num_launches);
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchThrustScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
