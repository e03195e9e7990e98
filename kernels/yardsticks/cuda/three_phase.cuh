// Strategy "three_phase": scan the tiles, scan their sums, add the scanned sums to the tiles. The sums are an array
// again, and are scanned in the same way, until they fit in one tile.
//
// Cost: 1, 3, 5, .. launches for arrays of b, b^2, b^3, .. items in tiles of b. Traffic 4n, since the tiles are
// written, read and written again, and little for the sums. Work and depth are the tile scan's, for every level, and
// an addition an item.
// Source: Funktor (its steps 1 to 3); Hadwiger ("large arrays"); Note and Save. Funktor says to scan the sums again,
// and not what to do if they are more than a block's. Its example adds 1 and 7 to 7, so that one of its results is 58,
// not 59. None of the sources takes an exclusive scan of the sums, which saves each block the look at the tile before
// its own.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUDA_THREE_PHASE_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUDA_THREE_PHASE_CUH_

#include <cstdint>

#include "kernels/yardsticks/cuda/shared_tile.cuh"

namespace prefixd::cuda {

template <class T>
struct ThreePhaseParams : TileParams<T> {
  T* tile_sums;  // One for each tile. Null if there is one tile, which then gets the start.
};

// One block for each tile.
template <class Scan, class T>
__global__ void __launch_bounds__(kTileThreads<T>) ScanTilesKernel(const __grid_constant__ ThreePhaseParams<T> p) {
  using Operator = typename Scan::Operator;
  auto tile = MakeTile<Scan>(p);
  const auto sum = LoadAndScan<Scan>(p, blockIdx.x, tile);
  auto before = Operator::Load(p.neutral);
  if (p.tile_sums == nullptr) before = Operator::Load(p.Start());
  JoinAndStore<Scan>(p, blockIdx.x, tile, before);
  if (threadIdx.x != 0) return;
  if (p.tile_sums != nullptr) {
    p.tile_sums[blockIdx.x] = Operator::Store(sum);
  } else if (p.carry_out != nullptr) {
    *p.carry_out = Operator::Store(Operator::Combine(before, sum));
  }
}

// By now each tile sum has become the value of all that stands before the tile.
template <class Operator, class T>
__global__ void __launch_bounds__(kTileThreads<T>) AddTileSumsKernel(const __grid_constant__ ThreePhaseParams<T> p) {
  const auto before = Operator::Load(p.tile_sums[blockIdx.x]);
  const uint64_t begin = uint64_t{blockIdx.x} * p.tile_items;
  for (int i = static_cast<int>(threadIdx.x); i < p.tile_items && begin + i < p.num_items; i += kTileThreads<T>) {
    T& element = p.out[p.At(begin + i)];
    element = Operator::Store(Operator::Combine(before, Operator::Load(element)));
  }
}

// The number of sums of all levels.
inline uint64_t NumTileSums(uint64_t num_tiles, uint64_t tile_items) {
  uint64_t num_sums = 0;
  while (num_tiles > 1) {
    num_sums += num_tiles;
    num_tiles = (num_tiles + tile_items - 1) / tile_items;
  }
  return num_sums;
}

// d_sums: room for NumTileSums. Adds to *num_launches.
template <class Scan, class T>
cudaError_t LaunchThreePhases(TileParams<T> level, size_t shared_bytes, T* d_sums, cudaStream_t stream,
                              uint64_t* num_launches) {
  ThreePhaseParams<T> params = {level, level.num_tiles > 1 ? d_sums : nullptr};
  ++*num_launches;
  cudaError_t error = Launch(ScanTilesKernel<Scan, T>, params.num_tiles, kTileThreads<T>, stream, params, shared_bytes);
  if (error != cudaSuccess || params.num_tiles == 1) return error;

  TileParams<T> sums = level;
  sums.in = sums.out = d_sums;
  sums.num_items = level.num_tiles;
  sums.exclusive = true;
  sums.reverse = false;
  error = CountTiles(sums.num_items, sums.tile_items, &sums.num_tiles);
  if (error != cudaSuccess) return error;
  error = LaunchThreePhases<Scan>(sums, shared_bytes, d_sums + sums.num_items, stream, num_launches);
  if (error != cudaSuccess) return error;
  ++*num_launches;
  return Launch(AddTileSumsKernel<typename Scan::Operator, T>, params.num_tiles, kTileThreads<T>, stream, params);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUDA_THREE_PHASE_CUH_
