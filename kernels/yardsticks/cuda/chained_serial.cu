// Strategy "chained_serial": one launch; each block waits for the one before, adds its tile's sum, and passes it on.
//
// Cost: traffic 2n, and a value and a flag a tile; the tile scan's work, and an addition an item. The depth is the
// chain: n / b times the way from one block to the next through the L2 cache. It is there to be compared with chained.
// Progress: tile numbers are tickets, so the block before has started.
// Memory order: a value is written before its flag is released, and read after the flag was acquired. Nothing is
// reset: flags are marked with the launch's epoch (look_back.cuh).
// Source: Funktor. It takes blockIdx for the order in which blocks start, which nothing promises; reads S without
// acquiring it; and waits by atomicAdd(flag, 0), a write, by every thread of the block, where one could read.
#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"
#include "kernels/yardsticks/cuda/tile_scans.cuh"

namespace prefixd::cuda {
namespace {

template <class T>
struct ChainedSerialParams : TileParams<T> {
  TileStates states;  // One word a tile: its flag.
  T* prefixes;        // The prefix through each tile, valid once its flag is set.

  __device__ DeviceAtomic64 Flag(uint32_t tile) const { return DeviceAtomic64(states.words[tile]); }
};

template <class Scan, class T>
__global__ void __launch_bounds__(kTileThreads<T>)
    ChainedSerialKernel(const __grid_constant__ ChainedSerialParams<T> p) {
  using Operator = typename Scan::Operator;
  using Item = typename Scan::Item;
  __shared__ uint32_t s_number;
  __shared__ Item s_before;
  auto tile = MakeTile<Scan>(p);
  if (threadIdx.x == 0) s_number = p.states.TakeTile();
  __syncthreads();
  const uint32_t number = s_number;
  const Item sum = LoadAndScan<Scan>(p, number, tile);
  if (threadIdx.x == 0) {
    const uint64_t set = uint64_t{p.states.Epoch()} << 32;
    if (number == 0) {
      s_before = Operator::Load(p.Start());
    } else {
      while (p.Flag(number - 1).load(::cuda::memory_order_acquire) != set) {
      }
      s_before = Operator::Load(p.prefixes[number - 1]);
    }
    const T through = Operator::Store(Operator::Combine(s_before, sum));
    if (number + 1 < p.num_tiles) {
      p.prefixes[number] = through;
      p.Flag(number).store(set, ::cuda::memory_order_release);
    } else if (p.carry_out != nullptr) {
      *p.carry_out = through;
    }
    p.states.Leave();
  }
  __syncthreads();
  JoinAndStore<Scan>(p, number, tile, s_before);
}

}  // namespace

template <class T>
cudaError_t LaunchChainedSerialScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTileScan<T>(args.algorithm.tile_scan, args.op, [&](auto tag) {
    using Scan = typename decltype(tag)::type;
    ChainedSerialParams<T> params = {MakeTileParams<T>(args), {}, nullptr};
    size_t shared_bytes = 0;
    cudaError_t error =
        CutIntoTiles<Scan>(args.algorithm.items_per_thread, static_cast<TileParams<T>*>(&params), &shared_bytes);
    if (error != cudaSuccess) return error;
    error = PrepareTickets<uint32_t>(params.tile_items, /*ticket_states=*/1, context, &params);
    if (error != cudaSuccess) return error;
    void* d_prefixes = nullptr;
    error = context->scratch.Get(context->stream, params.num_tiles * sizeof(T), &d_prefixes);
    if (error != cudaSuccess) return error;
    params.prefixes = static_cast<T*>(d_prefixes);
    *num_launches = 1;
    return Launch(ChainedSerialKernel<Scan, T>, params.num_tiles, kTileThreads<T>, context->stream, params,
                  shared_bytes);
  });
}

#define PREFIXD_INSTANTIATE(T) \
  template cudaError_t LaunchChainedSerialScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
