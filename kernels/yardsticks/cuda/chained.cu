// Strategy "chained" with a tile scan named: textbook tiles, joined as the default's are, in one launch with look-back.
//
// A block takes tiles by ticket, publishes the sum of each, and joins the sums of all earlier tiles by itself
// (look_back.cuh). So no sum is passed on from block to block, and the bits do not depend on time.
// Cost: traffic 2n, and a word or two for each block and tile, within the L2 cache; the tile scan's work, and an
// addition an item.
// Source: Merrill and Garland 2016; it is what Funktor's chain grows up to.
#include <algorithm>
#include <cstdint>

#include "kernels/cuda/look_back.cuh"
#include "kernels/yardsticks/cuda/scans.h"
#include "kernels/yardsticks/cuda/shared_tile.cuh"
#include "kernels/yardsticks/cuda/tile_scans.cuh"

namespace prefixd::cuda {
namespace {

// Enough blocks to keep a multiprocessor busy while some wait. Each further block would also read all tiles' sums.
constexpr int kBlocksPerMultiprocessor = 4;

template <class T>
struct ChainedParams : TileParams<T> {
  TileStates states;
};

template <class Scan, class T>
__global__ void __launch_bounds__(kTileThreads<T>) ChainedKernel(const __grid_constant__ ChainedParams<T> p) {
  using Operator = typename Scan::Operator;
  using Item = typename Scan::Item;
  using Fold = GroupFold<Operator, kTileWarps<Item>>;
  __shared__ typename Fold::Shared s_fold;
  __shared__ uint32_t s_number;
  const uint32_t epoch = p.states.Epoch();
  Fold fold(p.states, epoch, Operator::Load(p.Start()), Operator::Load(p.neutral), WarpOfBlock(), s_fold);
  // Every block reads carry_in before it publishes anything. The last tile writes carry_out, which may be the same
  // element, after it has seen the sums of all other tiles. The fences put these reads before this write.
  if (p.carry_in != nullptr) __threadfence();
  for (;;) {
    if (threadIdx.x == 0) s_number = p.states.TakeTile();
    __syncthreads();
    const uint32_t number = s_number;
    if (number >= p.num_tiles) break;
    auto tile = MakeTile<Scan>(p);
    const Item sum = LoadAndScan<Scan>(p, number, tile);
    if (threadIdx.x == 0) p.states.Publish(number, epoch, sum);
    const auto slot = static_cast<int>(number % kJoinSlots);
    fold.WaitFor(number / kJoinSlots, slot, [] { __syncthreads(); });
    const auto prefix = fold.Prefix(slot);
    const Item before = Operator::Combine(prefix.array, prefix.group);
    if (number + 1 == p.num_tiles && threadIdx.x == 0 && p.carry_out != nullptr) {
      __threadfence();
      *p.carry_out = Operator::Store(Operator::Combine(before, sum));
    }
    JoinAndStore<Scan>(p, number, tile, before);
  }
  if (threadIdx.x == 0) p.states.Leave();
}

}  // namespace

template <class T>
cudaError_t LaunchChainedScan(const ScanArgs& args, LaunchContext* context, uint64_t* num_launches) {
  return VisitTileScan<T>(args.algorithm.tile_scan, args.op, [&](auto tag) {
    using Scan = typename decltype(tag)::type;
    ChainedParams<T> params = {MakeTileParams<T>(args), {}};
    size_t shared_bytes = 0;
    cudaError_t error =
        CutIntoTiles<Scan>(args.algorithm.items_per_thread, static_cast<TileParams<T>*>(&params), &shared_bytes);
    if (error != cudaSuccess) return error;
    error = PrepareTickets<typename Scan::Item>(params.tile_items, /*ticket_states=*/1, context, &params);
    if (error != cudaSuccess) return error;
    const auto num_blocks =
        std::min<uint32_t>(params.num_tiles, kBlocksPerMultiprocessor * context->num_multiprocessors);
    *num_launches = 1;
    return Launch(ChainedKernel<Scan, T>, num_blocks, kTileThreads<T>, context->stream, params, shared_bytes);
  });
}

#define PREFIXD_INSTANTIATE(T) template cudaError_t LaunchChainedScan<T>(const ScanArgs&, LaunchContext*, uint64_t*);
PREFIXD_FOR_EACH_TEXTBOOK_TYPE(PREFIXD_INSTANTIATE)
#undef PREFIXD_INSTANTIATE

}  // namespace prefixd::cuda
