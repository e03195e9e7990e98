// Scan, strategy "naive": one thread an output, which adds up everything before it.
//
// Cost: work n^2 / 2, depth n; limited to kMaxNaiveItems. Reads n^2 / 2, most of it from the caches, since the lanes
// of a warp read the same item at the same time; writes n. No barrier. One launch. Where it would overwrite what others
// still read, a copy comes first: of the array if it is in place, of carry_in if that is carry_out.
// Order: the bits are those of the sequential loop.
// Source: Funktor (prefix_sum_cuda_unoptimized), whose threads past the end read past the end.
#include <cstdint>

#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {
namespace {

template <class Operator, class T>
__global__ void __launch_bounds__(kTileThreads<T>) NaiveScanKernel(const __grid_constant__ TileParams<T> p) {
  const uint64_t i = uint64_t{blockIdx.x} * kTileThreads<T> + threadIdx.x;
  if (i >= p.num_items && i > 0) return;
  auto value = Operator::Load(p.Start());
  for (uint64_t j = 0; j < i; ++j) value = Operator::Combine(value, Operator::Load(p.in[p.At(j)]));
  if (i < p.num_items) {
    const auto with_own = Operator::Combine(value, Operator::Load(p.in[p.At(i)]));
    p.out[p.At(i)] = Operator::Store(p.exclusive ? value : with_own);
    value = with_own;
  }
  if (i + 1 >= p.num_items && p.carry_out != nullptr) *p.carry_out = Operator::Store(value);
}

}  // namespace

template <class T>
cudaError_t LaunchNaiveScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  if (args.num_items > kMaxNaiveItems) return cudaErrorInvalidValue;
  TileParams<T> params = MakeTileParams<T>(args);
  void* d_scratch = nullptr;
  cudaError_t error = context->scratch.Get(context->stream, (args.num_items + 1) * sizeof(T), &d_scratch);
  if (error != cudaSuccess) return error;
  T* const d_copies = static_cast<T*>(d_scratch);
  *num_launches = 0;
  const auto copy = [&](const T** d_from, T* d_to, uint64_t num_items) {
    ++*num_launches;
    const T* const d_source = *d_from;
    *d_from = d_to;
    return cudaMemcpyAsync(d_to, d_source, num_items * sizeof(T), cudaMemcpyDeviceToDevice, context->stream);
  };
  if (params.in == params.out && args.num_items > 0) error = copy(&params.in, d_copies + 1, args.num_items);
  if (error != cudaSuccess) return error;
  if (params.carry_in != nullptr && params.carry_in == params.carry_out) error = copy(&params.carry_in, d_copies, 1);
  if (error != cudaSuccess) return error;
  error = CountTiles(args.num_items, kTileThreads<T>, &params.num_tiles);
  if (error != cudaSuccess) return error;
  ++*num_launches;
  return VisitTextbookOp(args.op, [&](auto op) {
    return Launch(NaiveScanKernel<Operator<decltype(op)::kValue, T>, T>, params.num_tiles, kTileThreads<T>,
                  context->stream, params);
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchNaiveScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
