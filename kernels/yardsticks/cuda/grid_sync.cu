// Strategy "grid_sync": the three phases in one launch, with one wait of all blocks for each other between them.
//
// Every block goes through a stretch of neighbouring tiles, carrying on from one to the next. When all blocks are done,
// each scans the sums of the blocks before it, and adds the result to its stretch.
// Cost: one launch; traffic 4n, and a word for each pair of blocks; the tile scan's depth, for each tile of a stretch.
// Progress: a block that waits for others needs them to run, so no more are launched than are resident at once, by a
// cooperative launch, which starts all of them or none.
// Source: Funktor: a counter that all threads add to and spin on. It deadlocks when there are more blocks than are
// resident (Funktor says so). When there are not, it doesn't wait, since each turn of a thread's loop counts like
// another thread. And it orders no memory.
#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>

#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"
#include "kernels/yardsticks/cuda/tile_scans.cuh"

namespace prefixd::cuda {
namespace {

template <class T>
struct GridSyncParams : TileParams<T> {
  T* block_sums;

  // Where the stretch of a block begins; as even as can be, and none is empty.
  __device__ uint32_t FirstTile(uint32_t block) const {
    return static_cast<uint32_t>(uint64_t{this->num_tiles} * block / gridDim.x);
  }
};

template <class Scan, class T>
__global__ void __launch_bounds__(kTileThreads<T>) GridSyncKernel(const __grid_constant__ GridSyncParams<T> p) {
  using Operator = typename Scan::Operator;
  const auto neutral = Operator::Load(p.neutral);
  auto before = Operator::Load(p.Start());  // Read here, since carry_in may be carry_out.
  const uint32_t first_tile = p.FirstTile(blockIdx.x);
  const uint32_t last_tile = p.FirstTile(blockIdx.x + 1);
  auto sum = neutral;
  for (uint32_t number = first_tile; number < last_tile; ++number) {
    auto tile = MakeTile<Scan>(p);
    const auto tile_sum = LoadAndScan<Scan>(p, number, tile);
    JoinAndStore<Scan>(p, number, tile, sum);
    sum = Operator::Combine(sum, tile_sum);
  }
  if (threadIdx.x == 0) p.block_sums[blockIdx.x] = Operator::Store(sum);
  cooperative_groups::this_grid().sync();

  // Add up the sums of the blocks before, a tile of sums at a time.
  for (uint32_t begin = 0; begin < blockIdx.x; begin += p.tile_items) {
    auto tile = MakeTile<Scan>(p);
    for (int i = static_cast<int>(threadIdx.x); i < tile.size(); i += kTileThreads<T>) {
      tile[i] = begin + i < blockIdx.x ? Operator::Load(p.block_sums[begin + i]) : neutral;
    }
    __syncthreads();
    before = Operator::Combine(before, Scan::Run(tile, /*exclusive=*/false, neutral));
    __syncthreads();
  }
  const uint64_t end = min(uint64_t{last_tile} * p.tile_items, p.num_items);
  for (uint64_t i = uint64_t{first_tile} * p.tile_items + threadIdx.x; i < end; i += kTileThreads<T>) {
    T& element = p.out[p.At(i)];
    element = Operator::Store(Operator::Combine(before, Operator::Load(element)));
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0 && p.carry_out != nullptr) {
    *p.carry_out = Operator::Store(Operator::Combine(before, sum));
  }
}

}  // namespace

template <class T>
cudaError_t LaunchGridSyncScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTileScan<T>(args.algorithm.tile_scan, args.op, [&](auto tag) {
    using Scan = typename decltype(tag)::type;
    const auto kernel = GridSyncKernel<Scan, T>;
    GridSyncParams<T> params = {MakeTileParams<T>(args), nullptr};
    size_t shared_bytes = 0;
    cudaError_t error =
        CutIntoTiles<Scan>(args.algorithm.items_per_thread, static_cast<TileParams<T>*>(&params), &shared_bytes);
    if (error != cudaSuccess) return error;
    int blocks_per_multiprocessor = 0;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_multiprocessor, kernel, kTileThreads<T>,
                                                          shared_bytes);
    if (error != cudaSuccess) return error;
    const auto num_blocks =
        std::min<uint32_t>(params.num_tiles, blocks_per_multiprocessor * context->num_multiprocessors);
    void* d_sums = nullptr;
    error = context->scratch.Get(context->stream, num_blocks * sizeof(T), &d_sums);
    if (error != cudaSuccess) return error;
    params.block_sums = static_cast<T*>(d_sums);
    *num_launches = 1;
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(num_blocks);
    config.blockDim = dim3(kTileThreads<T>);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = context->stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, params);
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchGridSyncScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
