// Scan down the columns of a matrix, each an array of its own: a batch whose arrays are interleaved.
//
// A thread has a column, or a few that stand side by side, and walks down; neighbouring threads have neighbouring
// columns, so a warp's accesses are those of a copy. The items of many rows are on their way meanwhile (cp.async), into
// words of shared memory that no other thread reads: nobody waits for anybody. What stands before a row is in
// registers.
// Traffic: reads n, writes n. One launch. In place: an item is loaded before it is written, and by the same thread.
// Cost:    at the speed of a copy where there are some ten thousand columns. Few long ones are cut in tiles:
//          column_tiles.cuh.
#ifndef PREFIXD_KERNELS_CUDA_COLUMN_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_COLUMN_SCAN_CUH_

#include <cuda_pipeline.h>

#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/array_prefix.cuh"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/tile_io.cuh"

namespace prefixd::cuda {

// What stands before a tile of a column.
template <class Item>
struct ColumnTileStart {
  Item groups;  // The value of whole groups,
  Item tiles;   // the tree of whole tiles behind them,
  Item last;    // and the value of all.
};

template <class In, class Out>
struct ColumnScanParams {
  const In* in;  // The row that the scan begins with.
  Out* out;
  uint64_t num_rows;
  uint64_t num_columns;
  int64_t pitch;  // From a row to the next in the order of the scan.
  Out init;
  Out neutral;
  bool exclusive;
  // ColumnTileStart of each column, tile by tile: a thread has a tile. Null: it has whole columns.
  const void* tile_starts = nullptr;
};

// A matrix of some thousand columns, of elements of four bytes and more, has threads for a part of the card. So blocks
// are small there, and more multiprocessors have one (H200, 2^14 x 2^14 f32: 0.95 of the copy, with 128 threads 0.87).
// With narrow elements and many columns, large ones are faster.
template <class Items>
inline constexpr bool kHasSmallBlocks = sizeof(Items) == 8 && sizeof(Items{}.items[0]) >= 4;
template <class Items>
inline constexpr int kColumnThreads = kHasSmallBlocks<Items> ? 64 : 128;  // In a block.

// What stands before the next row of a column: what stands before its leaf, and the runs of that leaf.
template <class Operator, bool kAnyOrder = Operator::kAnyOrder>
class ColumnPrefix {
 public:
  using Item = typename Operator::Item;

  ColumnPrefix() = default;
  __device__ ColumnPrefix(Item start, Item neutral) : neutral_(neutral), leaves_(start, neutral) {
    runs_.tree = neutral;
  }
  __device__ ColumnPrefix(const ColumnTileStart<Item>& start, Item neutral)
      : neutral_(neutral), leaves_(start.groups, start.tiles, neutral) {
    runs_.tree = neutral;
  }
  // The value of the rows so far, of which the last ones are an open run.
  __device__ Item With(Item run) const { return leaves_.With(Operator::Combine(runs_.tree, run)); }
  // Adds a whole run, which is the index-th of the column. low: as in Slots.
  __device__ void Add(uint64_t index, uint32_t low, Item slot) {
    const auto run = static_cast<uint32_t>(index % kJoinSlots);
    if (low != Slots<Operator>::kKnownSlots - 1 || run < kJoinSlots - 1) return runs_.Add(run, low, slot);
    leaves_.Add(index / kJoinSlots, Operator::Combine(runs_.tree, slot));
    runs_.tree = neutral_;
  }

 private:
  Item neutral_;
  ArrayPrefix<Operator> leaves_;
  Slots<Operator> runs_;
};

// Where the order is free.
template <class Operator>
class ColumnPrefix<Operator, true> : public ArrayPrefix<Operator> {
 public:
  using ArrayPrefix<Operator>::ArrayPrefix;
  __device__ ColumnPrefix(const ColumnTileStart<typename Operator::Item>& start, typename Operator::Item neutral)
      : ArrayPrefix<Operator>(start.groups, start.tiles, neutral) {}
  __device__ void Add(uint64_t index, uint32_t /*low*/, typename Operator::Item slot) {
    ArrayPrefix<Operator>::Add(index, slot);
  }
};

// A thread has as many columns as make eight bytes, where they stand and end at such, or one.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) ColumnItems {
  T items[kWidth];
};

// The thread's items of the rows to come, in stages of two runs: in shared memory, or in registers where they are too
// narrow for cp.async.
template <class Elements>
class ColumnRing {
 public:
  using Items = Elements;
  static constexpr bool kIsShared = sizeof(Items) >= 4;
  static constexpr int kRows = 2 * kRunItems;  // In a stage.
  static constexpr int kThreads = kColumnThreads<Items>;
  // A multiple of kUnrolled. 48 KiB of a block's items, 64 where a thread's have eight bytes.
  static constexpr int kStages = !kIsShared ? 4 : sizeof(Items) == 4 ? 12 : kHasSmallBlocks<Items> ? 16 : 8;
  static constexpr size_t kSharedBytes = kIsShared ? sizeof(Items) * kStages * kRows * kThreads : 0;

  __device__ explicit ColumnRing(Items* s_items) : s_items_(s_items + threadIdx.x) {}

  // Starts the loads of a stage from the row `in` on; null: of none, but the order is kept. pitch: in bytes.
  __device__ void Start(int stage, const unsigned char* in, int64_t pitch) {
    if (in != nullptr) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const auto* const from = reinterpret_cast<const Items*>(in + row * pitch);
        if constexpr (kIsShared) {
          __pipeline_memcpy_async(At(stage, row), from, sizeof(Items));
        } else {
          registers_[stage][row] = *from;
        }
      }
    }
    if constexpr (kIsShared) CommitCopies();
  }
  // The items of the oldest stage that was started. Needs: kStages were.
  __device__ void Take(int stage, Items (&items)[kRows]) {
    if constexpr (kIsShared) WaitForOwnCopies<kStages - 1>();
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if constexpr (kIsShared) {
        items[row] = *At(stage, row);
      } else {
        items[row] = registers_[stage][row];
      }
    }
  }
  // The items of the row `in`.
  __device__ Items Load(const unsigned char* in) const { return *reinterpret_cast<const Items*>(in); }

 private:
  __device__ Items* At(int stage, int row) const { return s_items_ + (stage * kRows + row) * kThreads; }

  Items* const s_items_;
  Items registers_[kIsShared ? 1 : kStages][kRows];
};

// Goes down a thread's columns: put(begins_run, elements) for each row, and end_run(index, low) after each whole run,
// which is the index-th. low: as in Slots. pitch: in bytes. Ring: as ColumnRing.
template <class Operator, class Ring, class PutRow, class EndRun>
__device__ void WalkDown(Ring ring, const unsigned char* in, int64_t pitch, uint64_t num_rows, PutRow put,
                         EndRun end_run) {
  constexpr int kStageRows = Ring::kRows, kStages = Ring::kStages;
  constexpr int kUnrolled = static_cast<int>(Slots<Operator>::kKnownSlots) * kRunItems / kStageRows;
  static_assert(kStages % kUnrolled == 0);
  const uint64_t num_stages = num_rows / kStageRows;
  const int64_t stage_pitch = kStageRows * pitch;
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    ring.Start(stage, stage < num_stages ? in + stage * stage_pitch : nullptr, pitch);
  }
  const unsigned char* ahead = in + kStages * stage_pitch;
  int first_stage = 0;
  for (uint64_t first = 0; first < num_stages; first += kUnrolled) {
#pragma unroll
    for (int i = 0; i < kUnrolled; ++i) {
      const uint64_t at = first + i;
      if (at >= num_stages) break;
      const int stage = kStages == kUnrolled ? i : first_stage + i;
      typename Ring::Items elements[kStageRows];
      ring.Take(stage, elements);
      ring.Start(stage, at + kStages < num_stages ? ahead : nullptr, pitch);
      ahead += stage_pitch;
#pragma unroll
      for (int row = 0; row < kStageRows; ++row) {
        const int run = row / kRunItems;
        put(row % kRunItems == 0, elements[row]);
        if (row % kRunItems == kRunItems - 1) end_run(2 * at + run, 2 * i + run);
      }
    }
    first_stage = first_stage + kUnrolled == kStages ? 0 : first_stage + kUnrolled;
  }
  in += static_cast<int64_t>(num_stages) * stage_pitch;
  const uint64_t first_run = 2 * num_stages;
  for (int row = 0; row < static_cast<int>(num_rows % kStageRows); ++row, in += pitch) {
    put(row % kRunItems == 0, ring.Load(in));
    if (row == kRunItems - 1) end_run(first_run, static_cast<uint32_t>(first_run % Slots<Operator>::kKnownSlots));
  }
}

// The columns of a thread, from the first row to the last, or a tile of them.
template <class In, class Out, Op kOp, bool kExclusive, int kWidth>
class ColumnScan {
 public:
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  using Elements = ColumnItems<In, kWidth>;
  using Results = ColumnItems<Out, kWidth>;

  __device__ ColumnScan(const ColumnScanParams<In, Out>& p, uint64_t tile, uint64_t column)
      : in_pitch_(p.pitch * static_cast<int64_t>(sizeof(In))), out_pitch_(p.pitch * static_cast<int64_t>(sizeof(Out))) {
    const int64_t first = static_cast<int64_t>(tile * kTileItems) * p.pitch + static_cast<int64_t>(column);
    in_ = reinterpret_cast<const unsigned char*>(p.in + first);
    out_ = reinterpret_cast<unsigned char*>(p.out + first);
    const Item start = Operator::Load(p.init), neutral = Operator::Load(p.neutral);
    const auto* const starts = static_cast<const ColumnTileStart<Item>*>(p.tile_starts);
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      const ColumnTileStart<Item> before =
          starts != nullptr ? starts[tile * p.num_columns + column + c] : ColumnTileStart<Item>{start, neutral, start};
      prefixes_[c] = ColumnPrefix<Operator>(before, neutral);
      last_.items[c] = Operator::Store(before.last);
    }
  }

  __device__ void Run(uint64_t num_rows, Elements* s_items) {
    WalkDown<Operator>(
        ColumnRing<Elements>(s_items), in_, in_pitch_, num_rows,
        [&](bool begins_run, const Elements& elements) { Put(begins_run, elements); },
        [&](uint64_t index, uint32_t low) {
#pragma unroll
          for (int c = 0; c < kWidth; ++c) prefixes_[c].Add(index, low, runs_[c]);
        });
  }

 private:
  // The next row.
  __device__ void Put(bool begins_run, const Elements& elements) {
    Results values;
#pragma unroll
    for (int c = 0; c < kWidth; ++c) {
      const Item item = Operator::Load(elements.items[c]);
      runs_[c] = begins_run ? item : Operator::Combine(runs_[c], item);
      values.items[c] = Operator::Store(prefixes_[c].With(runs_[c]));
    }
    *reinterpret_cast<Results*>(out_) = kExclusive ? last_ : values;
    last_ = values;
    out_ += out_pitch_;
  }

  const unsigned char* in_;
  unsigned char* out_;
  const int64_t in_pitch_;
  const int64_t out_pitch_;
  ColumnPrefix<Operator> prefixes_[kWidth];
  Item runs_[kWidth];
  Results last_;
};

template <class In, class Out, Op kOp, int kWidth>
__global__ void __launch_bounds__(kColumnThreads<ColumnItems<In, kWidth>>)
    ColumnScanKernel(const ColumnScanParams<In, Out> p) {
  extern __shared__ __align__(16) unsigned char s_column_items[];
  auto* const s_items = reinterpret_cast<ColumnItems<In, kWidth>*>(s_column_items);
  const uint64_t thread = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint64_t width = p.num_columns / kWidth;  // Threads for a row.
  uint64_t tile = 0, column = thread * kWidth, num_rows = p.num_rows;
  if (p.tile_starts != nullptr) {
    tile = thread / width;
    column = (thread - tile * width) * kWidth;
    if (tile * kTileItems >= p.num_rows) return;
    num_rows = NumValid(p.num_rows, tile * kTileItems);
  } else if (thread >= width) {
    return;
  }
  p.exclusive ? ColumnScan<In, Out, kOp, true, kWidth>(p, tile, column).Run(num_rows, s_items)
              : ColumnScan<In, Out, kOp, false, kWidth>(p, tile, column).Run(num_rows, s_items);
}

// A thread for each kWidth columns, or for each tile of them.
template <class In, class Out, Op kOp, int kWidth>
cudaError_t LaunchColumnsOf(const ColumnScanParams<In, Out>& params, uint64_t num_tiles, LaunchContext* context) {
  using Ring = ColumnRing<ColumnItems<In, kWidth>>;
  uint32_t num_blocks = 0;
  const cudaError_t error = CountTiles(params.num_columns / kWidth * num_tiles, Ring::kThreads, &num_blocks);
  if (error != cudaSuccess) return error;
  return Launch(ColumnScanKernel<In, Out, kOp, kWidth>, num_blocks, Ring::kThreads, context->stream, params,
                Ring::kSharedBytes);
}

// The first item of the row that the scan begins with. Needs: num_items > 0, here and below.
inline uint64_t FirstOfColumns(const ScanArgs& args) {
  return args.reverse ? (args.num_items - 1) * args.num_arrays : 0;
}

template <class In, class Out, Op kOp>
ColumnScanParams<In, Out> ColumnParamsOf(const ScanArgs& args) {
  const auto pitch = static_cast<int64_t>(args.num_arrays);
  return {.in = static_cast<const In*>(args.in) + FirstOfColumns(args),
          .out = static_cast<Out*>(args.out) + FirstOfColumns(args),
          .num_rows = args.num_items,
          .num_columns = args.num_arrays,
          .pitch = args.reverse ? -pitch : pitch,
          .init = args.init.As<Out>(),
          .neutral = NeutralOf<kOp, Out>(),
          .exclusive = args.kind == ScanKind::kExclusive};
}

// Calls launch(width) with how many columns a thread has.
template <class In, class Out, class LaunchWidth>
cudaError_t WithColumnWidth(const ScanArgs& args, LaunchWidth launch) {
  constexpr int kWidth = 8 / sizeof(In);
  if constexpr (sizeof(In) == sizeof(Out) && kWidth > 1) {
    const bool aligned =
        reinterpret_cast<uintptr_t>(args.in) % 8 == 0 && reinterpret_cast<uintptr_t>(args.out) % 8 == 0;
    if (aligned && args.num_arrays % kWidth == 0) return launch(std::integral_constant<int, kWidth>());
  }
  return launch(std::integral_constant<int, 1>());
}

template <class In, class Out, Op kOp>
cudaError_t LaunchColumnScan(const ScanArgs& args, LaunchContext* context) {
  if (args.num_items == 0) return cudaSuccess;
  return WithColumnWidth<In, Out>(args, [&](auto width) {
    return LaunchColumnsOf<In, Out, kOp, decltype(width)::value>(ColumnParamsOf<In, Out, kOp>(args), /*num_tiles=*/1,
                                                                 context);
  });
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_COLUMN_SCAN_CUH_
