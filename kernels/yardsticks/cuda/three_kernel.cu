// Compact, strategy "three_kernel": flag what is kept, scan the flags, scatter.
//
// The scan is three_phase with blelloch, exclusive and padded. It turns a flag into the position that its element goes
// to. An element is kept if the next position differs. Positions have 4 bytes, or, from 2^31 items on, 8.
// Cost: the launches of the scan, and two more. Traffic: n, what is kept, and seven words for each position. Stable.
// Source: Hadwiger; Note and Save. Hadwiger leaves out the count; Note and Save takes it from the last flag and
// position, and an array of no items has neither: here it is the scan's carry.
#include <cstdint>

#include "kernels/yardsticks/cuda/blelloch.cuh"
#include "kernels/yardsticks/cuda/keeps.cuh"
#include "kernels/yardsticks/cuda/reduces.h"
#include "kernels/yardsticks/cuda/three_phase.cuh"

namespace prefixd::cuda {
namespace {

template <class T, class Position>
struct ScatterParams : KeepParams<T> {
  Position* positions;  // One more than items: the last is the count.
};

template <class T, class Position>
__global__ void __launch_bounds__(kCompactThreads) FlagKernel(const __grid_constant__ ScatterParams<T, Position> p) {
  const uint64_t i = uint64_t{blockIdx.x} * kCompactThreads + threadIdx.x;
  if (i < p.num_items) p.positions[i] = p.Keeps(i) ? 1 : 0;
}

template <class T, class Position>
__global__ void __launch_bounds__(kCompactThreads) ScatterKernel(const __grid_constant__ ScatterParams<T, Position> p) {
  const uint64_t i = uint64_t{blockIdx.x} * kCompactThreads + threadIdx.x;
  if (i < p.num_items && p.positions[i] != p.positions[i + 1]) p.Write(p.positions[i], i);
  if (i == 0) *p.count = *p.h_num_kept = p.positions[p.num_items];
}

template <class T, class Position>
cudaError_t LaunchThreeKernels(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                               uint64_t* num_launches) {
  using Scan = Blelloch<Operator<Op::kSum, Position>>;
  ScatterParams<T, Position> params = {MakeKeepParams<T>(args, h_num_kept), nullptr};
  cudaError_t error = CountTiles(args.num_items, kCompactThreads, &params.num_tiles);
  if (error != cudaSuccess) return error;
  TileParams<Position> scan = {};
  scan.num_items = args.num_items;
  scan.padded = true;
  scan.exclusive = true;
  size_t shared_bytes = 0;
  error = CutIntoTiles<Scan>(/*items_per_thread=*/0, &scan, &shared_bytes);
  if (error != cudaSuccess) return error;
  void* d_scratch = nullptr;
  const uint64_t num_positions = args.num_items + 1;
  error = context->scratch.Get(
      context->stream, (num_positions + NumTileSums(scan.num_tiles, scan.tile_items)) * sizeof(Position), &d_scratch);
  if (error != cudaSuccess) return error;
  params.positions = static_cast<Position*>(d_scratch);
  scan.in = scan.out = params.positions;
  scan.carry_out = params.positions + args.num_items;

  *num_launches = 2;
  error = Launch(FlagKernel<T, Position>, params.num_tiles, kCompactThreads, context->stream, params);
  if (error != cudaSuccess) return error;
  error = LaunchThreePhases<Scan>(scan, shared_bytes, params.positions + num_positions, context->stream, num_launches);
  if (error != cudaSuccess) return error;
  return Launch(ScatterKernel<T, Position>, params.num_tiles, kCompactThreads, context->stream, params);
}

}  // namespace

template <class T>
cudaError_t LaunchThreeKernelCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                                     uint64_t* num_launches) {
  constexpr uint64_t kMaxItems = INT32_MAX;
  return args.num_items <= kMaxItems ? LaunchThreeKernels<T, int32_t>(args, h_num_kept, context, num_launches)
                                     : LaunchThreeKernels<T, int64_t>(args, h_num_kept, context, num_launches);
}

#define PREFIXD_INSTANTIATE(T) \
  template cudaError_t LaunchThreeKernelCompact<T>(const CompactArgs&, uint64_t*, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
