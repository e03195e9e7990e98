// Scan by a linear recurrence of segments, each an array of its own.
//
// Segments that are long, on average, have a block each (block_scan.cuh). Others have a warp, which goes through its
// segment leaf by leaf; what stands before the leaf is in registers. Traffic: reads n, the coefficients and the
// offsets, writes n. One launch. In place: an element is read before it is written, by the same block or warp. Cost:
// the lengths should be alike. One segment that is much longer than the others is scanned by one block, or one warp,
// while the rest of the card has nothing to do.
#ifndef PREFIXD_KERNELS_CUDA_RECURRENCE_SEGMENTS_CUH_
#define PREFIXD_KERNELS_CUDA_RECURRENCE_SEGMENTS_CUH_

#include <cstdint>

#include "kernels/cuda/array_prefix.cuh"
#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/recurrence.cuh"
#include "kernels/cuda/segment_scan.cuh"
#include "kernels/cuda/tile_io.cuh"

namespace prefixd::cuda {

inline constexpr int kSegmentWarps = 8;  // In a block.
// From here on, on average, blocks have whole steps to do.
inline constexpr uint64_t kMinBlockSegmentItems = kTileItems;

// A segment of a warp.
template <class T, bool kExclusive>
class SegmentOfSteps {
 public:
  using Operator = Operator<Op::kLinearRecurrence, T>;
  using Item = Step<T>;

  __device__ SegmentOfSteps(const RecurrenceParams<T>& p, const ArrayItems& items)
      : p_(p), items_(items), neutral_(Operator::Load(p.neutral)) {}

  __device__ void Run() {
    Item last = Operator::Load(p_.init);
    ArrayPrefix<Operator> prefix(last, neutral_);
    Load(0);
    uint64_t first = 0;
    for (; first + kLeafItems < items_.count; first += kLeafItems) ScanOne<true>(first, &prefix, &last);
    ScanOne<false>(first, &prefix, &last);
  }

 private:
  __device__ int NumValid(uint64_t first) const {
    return static_cast<int>(min(items_.count - first, uint64_t{kLeafItems}));
  }
  __device__ TileView<const T> View(const T* array, uint64_t first) const {
    return TileView<const T>(array + items_.begin, items_.count, first, p_.reverse);
  }

  // The lane's run of the leaf that begins at `first`.
  __device__ void Load(uint64_t first) {
    const int num_valid = NumValid(first);
    const TileView<const T> terms = View(p_.in, first);
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      const int item = LaneOfWarp() * kRunItems + i;
      ahead_[i] = {p_.coefficient, item < num_valid ? terms[item] : T{}};
    }
    if (p_.coefficients == nullptr) return;
    const TileView<const T> coefficients = View(p_.coefficients, first);
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      const int item = LaneOfWarp() * kRunItems + i;
      if (item < num_valid) ahead_[i].coefficient = coefficients[item];
    }
  }

  template <bool kHasNext>
  __device__ void ScanOne(uint64_t first, ArrayPrefix<Operator>* prefix, Item* last) {
    Item run[kRunItems];
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) run[i] = ahead_[i];
    if constexpr (kHasNext) Load(first + kLeafItems);
    ScanLeaf<Operator, kExclusive, kHasNext>(run, static_cast<int>(first / kLeafItems), neutral_, prefix, last);
    const TileView<T> out(p_.out + items_.begin, items_.count, first, p_.reverse);
    const int num_valid = NumValid(first);
#pragma unroll
    for (int i = 0; i < kRunItems; ++i) {
      const int item = LaneOfWarp() * kRunItems + i;
      if (item < num_valid) out[item] = Operator::Store(run[i]);
    }
  }

  const RecurrenceParams<T>& p_;
  const ArrayItems items_;
  const Item neutral_;
  Item ahead_[kRunItems];
};

template <class T>
__global__ void __launch_bounds__(kSegmentWarps* kWarpThreads)
    RecurrenceSegmentsKernel(const __grid_constant__ RecurrenceParams<T> p) {
  const uint64_t segment = uint64_t{blockIdx.x} * kSegmentWarps + WarpOfBlock();
  if (segment >= p.num_arrays) return;
  const ArrayItems items = ItemsOf(p, segment);
  if (items.count == 0) return;
  p.exclusive ? SegmentOfSteps<T, true>(p, items).Run() : SegmentOfSteps<T, false>(p, items).Run();
}

template <class T>
cudaError_t LaunchRecurrenceSegments(RecurrenceParams<T> params, LaunchContext* context) {
  if (params.num_items == 0) return cudaSuccess;
  params.aligned = false;
  if (params.num_items / params.num_arrays >= kMinBlockSegmentItems) {
    return Launch(BlockScanKernel<T, T, Op::kLinearRecurrence>, static_cast<uint32_t>(params.num_arrays),
                  kBlockScanThreads, context->stream, params);
  }
  const auto num_blocks = static_cast<uint32_t>((params.num_arrays + kSegmentWarps - 1) / kSegmentWarps);
  return Launch(RecurrenceSegmentsKernel<T>, num_blocks, kSegmentWarps * kWarpThreads, context->stream, params);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RECURRENCE_SEGMENTS_CUH_
