// Where runs of equal keys begin. Three launches, of which none waits for another block: the first reads the keys, and
// has a bit for each that begins a run, and a count for each tile; the counts are scanned; the last one turns bits into
// offsets. Traffic: reads n keys and writes the offsets; a bit for each key goes out and in.
#include <cstdint>

#include "kernels/cuda/glue.cuh"
#include "kernels/cuda/glue.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/select.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {
namespace {

// A warp has kRows rows, a lane four keys of each. Bit l of the word 4 * row + i: key i of lane l begins a run.
constexpr int kRowItems = 4 * kWarpThreads;
constexpr int kRows = kWarpThreads / 4;
constexpr int kWarpItems = kRows * kRowItems;
constexpr int kWarps = kRunsPartItems / kWarpItems;

struct RunsParams {
  const void* keys;
  uint64_t num_items;
  bool aligned;      // Keys can be loaded four by four.
  uint64_t* counts;  // For each tile: how many runs begin in it, then how many begin up to its end.
  uint32_t* words;   // kWarpThreads for each warp of each tile.
  uint64_t* offsets;
  uint64_t* num_offsets;
};

// The lane's first key.
__device__ uint64_t FirstItem() {
  return blockIdx.x * kRunsPartItems + static_cast<uint64_t>(WarpOfBlock() * kWarpItems + 4 * LaneOfWarp());
}
__device__ uint64_t FirstWord() { return (blockIdx.x * uint64_t{kWarps} + WarpOfBlock()) * kWarpThreads; }

template <class Key>
__global__ void __launch_bounds__(kWarps* kWarpThreads) FindRunsKernel(const RunsParams p) {
  __shared__ uint32_t s_counts[kWarps];
  const auto* const keys = static_cast<const Key*>(p.keys);
  const uint64_t first = FirstItem();
  Vector<Key, 4> rows[kRows];
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const uint64_t item = first + row * kRowItems;
    if (p.aligned && item + 4 <= p.num_items) {
      rows[row] = *reinterpret_cast<const Vector<Key, 4>*>(keys + item);
      continue;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) rows[row].items[i] = item + i < p.num_items ? keys[item + i] : Key{};
  }
  Accumulator<Key> before_row = LaneOfWarp() == 0 && 0 < first && first <= p.num_items ? keys[first - 1] : Key{};
  uint32_t lanes_word = 0;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    Accumulator<Key> items[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) items[i] = rows[row].items[i];
    Accumulator<Key> before = ShuffleFrom(items[3], LaneOfWarp() - 1);
    if (LaneOfWarp() == 0) before = before_row;
    before_row = ShuffleFrom(items[3], kWarpThreads - 1);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint64_t item = first + row * kRowItems + i;
      const bool begins = item < p.num_items && (item == 0 || items[i] != before);
      const uint32_t word = __ballot_sync(kAllLanes, begins);
      if (LaneOfWarp() == 4 * row + i) lanes_word = word;
      before = items[i];
    }
  }
  p.words[FirstWord() + LaneOfWarp()] = lanes_word;
  const uint32_t count = WarpTotal<CountSum>(static_cast<uint32_t>(__popc(lanes_word)));
  if (LaneOfWarp() == 0) s_counts[WarpOfBlock()] = count;
  __syncthreads();
  if (threadIdx.x > 0) return;
  uint64_t sum = 0;
  for (const uint32_t of_warp : s_counts) sum += of_warp;
  p.counts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kWarps* kWarpThreads) TakeOffsetsKernel(const RunsParams p) {
  __shared__ uint32_t s_counts[kWarps];
  const uint32_t lanes_word = p.words[FirstWord() + LaneOfWarp()];
  const uint32_t count = WarpTotal<CountSum>(static_cast<uint32_t>(__popc(lanes_word)));
  if (LaneOfWarp() == 0) s_counts[WarpOfBlock()] = count;
  __syncthreads();
  uint64_t rank = blockIdx.x > 0 ? p.counts[blockIdx.x - 1] : 0;
  for (int warp = 0; warp < WarpOfBlock(); ++warp) rank += s_counts[warp];
  const uint32_t lanes_before = (1u << LaneOfWarp()) - 1;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    uint32_t words[4];
    int num_before = 0, num_in_row = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = ShuffleFrom(lanes_word, 4 * row + i);
      num_before += __popc(words[i] & lanes_before);
      num_in_row += __popc(words[i]);
    }
    uint64_t* next = p.offsets + rank + num_before;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((words[i] >> LaneOfWarp() & 1) != 0) *next++ = FirstItem() + row * kRowItems + i;
    }
    rank += num_in_row;
  }
  if (blockIdx.x != gridDim.x - 1 || threadIdx.x > 0) return;
  const uint64_t num_runs = p.counts[blockIdx.x];
  p.offsets[num_runs] = p.num_items;
  *p.num_offsets = num_runs + 1;
}

}  // namespace

cudaError_t LaunchFindRuns(const RunsArgs& args, LaunchContext* context) {
  uint32_t num_tiles = 0;
  cudaError_t error = CountTiles(args.num_items, kRunsPartItems, &num_tiles);
  if (error != cudaSuccess) return error;
  auto* const counts = static_cast<uint64_t*>(args.scratch);
  RunsParams params = {.keys = args.keys,
                       .num_items = args.num_items,
                       .aligned = false,
                       .counts = counts,
                       .words = reinterpret_cast<uint32_t*>(counts + num_tiles),
                       .offsets = args.offsets,
                       .num_offsets = args.num_offsets};
  constexpr uint32_t kThreads = kWarps * kWarpThreads;
  error = VisitDType(args.dtype, [&](auto tag) {
    using Key = BitsOrFloat<typename decltype(tag)::type>;
    params.aligned = HasVectors<Key, 4>(static_cast<const Key*>(args.keys));
    return Launch(FindRunsKernel<Key>, num_tiles, kThreads, context->stream, params);
  });
  if (error != cudaSuccess) return error;
  ScanArgs scan;
  scan.dtype = DType::kU64;
  scan.in = scan.out = counts;
  scan.num_items = num_tiles;
  scan.init = Neutral(Op::kSum, DType::kU64);
  if (error = LaunchScan<uint64_t, uint64_t>(scan, context); error != cudaSuccess) return error;
  return Launch(TakeOffsetsKernel, num_tiles, kThreads, context->stream, params);
}

}  // namespace prefixd::cuda
