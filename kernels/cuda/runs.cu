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
  uint32_t num_tiles;
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

// A warp has a tile, a lane two rows. Where runs are long, a lane writes the offsets of its rows; else the warp writes
// those of one row after the other.
constexpr int kTakeWarps = 8;
constexpr int kLaneRows = kWarps * kRows / kWarpThreads;
static_assert(kWarps * kRows % kWarpThreads == 0);
constexpr int kMaxLaneRuns = 16;

__global__ void __launch_bounds__(kTakeWarps* kWarpThreads) TakeOffsetsKernel(const RunsParams p) {
  const uint32_t tile = blockIdx.x * kTakeWarps + WarpOfBlock();
  if (tile >= p.num_tiles) return;
  const auto* const pairs = reinterpret_cast<const uint2*>(p.words + uint64_t{tile} * kWarps * kWarpThreads);
  uint32_t words[kLaneRows][4];
  uint32_t counts[kLaneRows] = {};
  uint32_t lane_count = 0;
#pragma unroll
  for (int i = 0; i < 2 * kLaneRows; ++i) {
    const uint2 pair = pairs[LaneOfWarp() * 2 * kLaneRows + i];
    words[i / 2][i % 2 * 2] = pair.x;
    words[i / 2][i % 2 * 2 + 1] = pair.y;
    counts[i / 2] += __popc(pair.x) + __popc(pair.y);
  }
#pragma unroll
  for (const uint32_t count : counts) lane_count += count;
  uint64_t* next = p.offsets + (tile > 0 ? p.counts[tile - 1] : 0) + WarpTrees<CountSum>(lane_count) - lane_count;
  const uint64_t tile_item = uint64_t{tile} * kRunsPartItems;
  if (__all_sync(kAllLanes, lane_count <= kMaxLaneRuns)) {
#pragma unroll
    for (int row = 0; row < kLaneRows; ++row) {
      const uint32_t(&word_of)[4] = words[row];
      const uint64_t row_item = tile_item + (LaneOfWarp() * kLaneRows + row) * kRowItems;
      for (uint32_t lanes = word_of[0] | word_of[1] | word_of[2] | word_of[3]; lanes != 0; lanes &= lanes - 1) {
        const int lane = __ffs(static_cast<int>(lanes)) - 1;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((word_of[i] >> lane & 1) != 0) *next++ = row_item + 4 * lane + i;
        }
      }
    }
  } else {
    const uint32_t lanes_before = (1u << LaneOfWarp()) - 1;
#pragma unroll
    for (int row = 0; row < kLaneRows; ++row) {
#pragma unroll 4
      for (int lane = 0; lane < kWarpThreads; ++lane) {
        const uint32_t word_of[] = {ShuffleFrom(words[row][0], lane), ShuffleFrom(words[row][1], lane),
                                    ShuffleFrom(words[row][2], lane), ShuffleFrom(words[row][3], lane)};
        auto* place = reinterpret_cast<uint64_t*>(ShuffleFrom(reinterpret_cast<uintptr_t>(next), lane));
#pragma unroll
        for (const uint32_t word : word_of) place += __popc(word & lanes_before);
        const uint64_t item = tile_item + (lane * kLaneRows + row) * kRowItems + 4 * LaneOfWarp();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((word_of[i] >> LaneOfWarp() & 1) != 0) *place++ = item + i;
        }
      }
      next += counts[row];
    }
  }
  if (tile != p.num_tiles - 1 || LaneOfWarp() > 0) return;
  const uint64_t num_runs = p.counts[tile];
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
                       .num_tiles = num_tiles,
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
  const uint32_t num_blocks = (num_tiles + kTakeWarps - 1) / kTakeWarps;
  return Launch(TakeOffsetsKernel, num_blocks, kTakeWarps * kWarpThreads, context->stream, params);
}

}  // namespace prefixd::cuda
