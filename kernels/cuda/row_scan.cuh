// Scan of many arrays that follow each other, the rows of a matrix: a warp has a row, or a thread has one that is
// short.
//
// A warp goes through its row leaf by leaf, each lane with a run; what stands before the leaf is in registers, and the
// next leaves are on their way. Rows that are shorter than a leaf would leave lanes without work: there a block brings
// whole rows to shared memory, and each thread scans one.
// Traffic: reads n, writes n. One launch. In place: what is written was read before, by the same warp or block.
#ifndef PREFIXD_KERNELS_CUDA_ROW_SCAN_CUH_
#define PREFIXD_KERNELS_CUDA_ROW_SCAN_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/association.h"
#include "kernels/cuda/array_prefix.cuh"
#include "kernels/cuda/column_scan.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/short_rows.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In, class Out>
struct RowScanParams {
  const In* in;
  Out* out;
  uint64_t num_rows;
  uint64_t row_items;
  Out init;
  Out neutral;
  bool exclusive;
};

// ---- A warp has a row ----------------------------------------------------------------------------------------------
inline constexpr int kRowWarps = 8;  // In a block.
// Rows of up to so many items end soon: there, other warps have to hide how long a warp waits for its first leaf. By
// measurement (H200, 2^20 x 256 f32): 0.99 of the copy with six blocks on a multiprocessor, 0.90 with as many as
// registers that the compiler likes leave room for; but long rows are slower by 3 % with fewer registers.
inline constexpr uint64_t kMaxHiddenRowItems = 512;
// Items of several numbers need the registers, and cards before sm_80 have no more than four such blocks.
template <class Item>
constexpr int RowBlocks([[maybe_unused]] bool is_short) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return 1;
#else
  return !is_short || !std::is_arithmetic_v<Item> ? 1 : sizeof(Item) == 4 ? 6 : 5;
#endif
}

template <class In, class Out, Op kOp, bool kAligned, bool kIsShort>
__global__ void __launch_bounds__(kRowWarps* kWarpThreads, RowBlocks<typename Operator<kOp, Out>::Item>(kIsShort))
    RowScanKernel(const RowScanParams<In, Out> p) {
  using Operator = Operator<kOp, Out>;
  using Item = typename Operator::Item;
  constexpr int kAhead = 2;  // Leaves that are on their way.
  // A row each. Warps that took one row after the other gave 0.78 of the copy, and these 0.92 (H200, 2^14 x 2^14 f32).
  const uint64_t row = uint64_t{blockIdx.x} * kRowWarps + WarpOfBlock();
  if (row >= p.num_rows) return;
  const In* const in = p.in + row * p.row_items;
  Out* const out = p.out + row * p.row_items;
  const Item neutral = Operator::Load(p.neutral);
  const Item start = Operator::Load(p.init);
  ArrayPrefix<Operator> prefix(start, neutral);
  Item last = start;  // The value of the row up to the leaf.

  const auto load = [&](uint64_t first, Run<In>& run) {
    if (kAligned && first + kRunItems <= p.row_items) {
      run = *reinterpret_cast<const Run<In>*>(in + first);
      return;
    }
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) run.items[i] = first + i < p.row_items ? in[first + i] : In{};
  };
  const auto store = [&](uint64_t first, const Run<Out>& run) {
    if (kAligned && first + kRunItems <= p.row_items) {
      *reinterpret_cast<Run<Out>*>(out + first) = run;
      return;
    }
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      if (first + i < p.row_items) out[first + i] = run.items[i];
    }
  };

  const uint64_t num_leaves = (p.row_items + kLeafItems - 1) / kLeafItems;
  const uint64_t lane_item = LaneOfWarp() * kRunItems;
  Run<In> ahead[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) load(uint64_t{static_cast<uint32_t>(i)} * kLeafItems + lane_item, ahead[i]);
  for (uint64_t first_leaf = 0; first_leaf < num_leaves; first_leaf += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const uint64_t leaf = first_leaf + i;
      if (leaf >= num_leaves) break;
      Item items[kRunItems];
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) items[k] = Operator::Load(ahead[i].items[k]);
      const uint64_t first = leaf * kLeafItems + lane_item;
      load(first + kAhead * kLeafItems, ahead[i]);
      const Item before_run = JoinRun<Operator>(items, neutral);
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) items[k] = Operator::Combine(before_run, items[k]);
      const Item leaf_value = ShuffleFrom(items[kRunItems - 1], kWarpThreads - 1);
#pragma unroll
      for (int k = 0; k < kRunItems; ++k) items[k] = prefix.With(items[k]);
      prefix.Add(leaf, leaf_value);
      Run<Out> results;
      if (p.exclusive) {
        Item previous = ShuffleFrom(items[kRunItems - 1], LaneOfWarp() - 1);
        if (LaneOfWarp() == 0) previous = last;
        last = ShuffleFrom(items[kRunItems - 1], kWarpThreads - 1);
        results.items[0] = Operator::Store(previous);
#pragma unroll
        for (int k = 1; k < kRunItems; ++k) results.items[k] = Operator::Store(items[k - 1]);
      } else {
#pragma unroll
        for (int k = 0; k < kRunItems; ++k) results.items[k] = Operator::Store(items[k]);
      }
      store(first, results);
    }
  }
}

// ---- A thread has a row --------------------------------------------------------------------------------------------
template <class In, class Out, Op kOp>
__global__ void __launch_bounds__(kShortRowThreads) ShortRowScanKernel(const RowScanParams<In, Out> p) {
  extern __shared__ __align__(16) unsigned char s_rows[];
  using Operator = Operator<kOp, Out>;
  const auto start = Operator::Load(p.init);
  const auto neutral = Operator::Load(p.neutral);
  const ShortRowTile<In> tile(p.row_items, p.num_rows, s_rows);
  tile.Load(p.in);
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x); row < tile.num_rows(); row += kShortRowThreads) {
    const auto* const elements = reinterpret_cast<const In*>(tile.Row(row));
    auto* const results = reinterpret_cast<Out*>(tile.Row(row));
    p.exclusive ? ScanShortArray<Operator, true>(elements, results, tile.row_items(), start, neutral)
                : ScanShortArray<Operator, false>(elements, results, tile.row_items(), start, neutral);
  }
  __syncthreads();
  tile.Store(p.out);
}

// ---- Which --------------------------------------------------------------------------------------------------------
// Fewer rows than that leave the card without work.
inline constexpr uint64_t kMinScanRows = 1024;

inline bool RowScanServes(const ScanArgs& args) {
  return args.offsets == nullptr && args.num_arrays >= kMinScanRows && !args.reverse && args.num_items > 0;
}

template <class In, class Out, Op kOp>
cudaError_t LaunchRowScan(const ScanArgs& args, LaunchContext* context) {
  const RowScanParams<In, Out> params = {.in = static_cast<const In*>(args.in),
                                         .out = static_cast<Out*>(args.out),
                                         .num_rows = args.num_arrays,
                                         .row_items = args.num_items,
                                         .init = args.init.As<Out>(),
                                         .neutral = NeutralOf<kOp, Out>(),
                                         .exclusive = args.kind == ScanKind::kExclusive};
  if constexpr (sizeof(In) == sizeof(Out)) {
    if (args.num_items * sizeof(Out) <= kMaxShortRowBytes) {
      const int block_rows = ShortRows<Out>(args.num_items);
      const auto num_blocks = static_cast<uint32_t>((args.num_arrays + block_rows - 1) / block_rows);
      return Launch(ShortRowScanKernel<In, Out, kOp>, num_blocks, kShortRowThreads, context->stream, params,
                    block_rows * ShortRowPitch<Out>(args.num_items));
    }
  }
  const bool aligned = HasAlignedRuns(params.in) && HasAlignedRuns(params.out) &&
                       args.num_items * sizeof(In) % alignof(Run<In>) == 0 &&
                       args.num_items * sizeof(Out) % alignof(Run<Out>) == 0;
  const auto num_blocks = static_cast<uint32_t>((args.num_arrays + kRowWarps - 1) / kRowWarps);
  auto* kernel = RowScanKernel<In, Out, kOp, false, false>;
  if (aligned) {
    kernel = args.num_items <= kMaxHiddenRowItems ? RowScanKernel<In, Out, kOp, true, true>
                                                  : RowScanKernel<In, Out, kOp, true, false>;
  }
  return Launch(kernel, num_blocks, kRowWarps * kWarpThreads, context->stream, params);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_ROW_SCAN_CUH_
