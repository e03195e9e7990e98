// Scan by a linear recurrence, y[i] = coefficients[i] * y[i-1] + in[i]: its items are steps, and steps combine.
//
// One array goes through the ring as in ring_scan.cuh, or tile by tile as in tile_scan.cuh; so does each long row, and
// others have a block each as in block_scan.cuh. Columns and segments: recurrence_columns.cuh, recurrence_segments.cuh.
// Traffic: reads n and the coefficients, writes n. One launch. Source: Blelloch 1990 for the operator on pairs.
#ifndef PREFIXD_KERNELS_CUDA_RECURRENCE_CUH_
#define PREFIXD_KERNELS_CUDA_RECURRENCE_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/block_scan.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_scan.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/scan_run.cuh"
#include "kernels/cuda/tile_scan.cuh"

namespace prefixd::cuda {

// y becomes coefficient * y + term.
template <class T>
struct Step {
  T coefficient;
  T term;
};

template <class T>
__device__ Step<T> ShuffleFrom(Step<T> step, int lane) {
  return {ShuffleFrom(step.coefficient, lane), ShuffleFrom(step.term, lane)};
}

// An element by itself is a start: the step that forgets what was before. A term of -0 is none: so a start of -0
// changes nothing, on either side, whatever the coefficients are.
template <class T>
struct Operator<Op::kLinearRecurrence, T> {
  using Item = Step<T>;
  static constexpr bool kAnyOrder = false;

  static __device__ Item Load(T start) { return {T(1), start}; }
  static __device__ Item Load(Step<T> step) { return step; }
  static __device__ T Store(Item item) { return Canonical(item.term); }
  static __device__ Item Combine(Item left, Item right) {
    return {left.coefficient * right.coefficient,
            IsNone(left.term) ? right.term : right.coefficient * left.term + right.term};
  }

 private:
  static __device__ bool IsNone(T term) {
    if constexpr (sizeof(T) == 4) return __float_as_uint(term) == 1u << 31;
    if constexpr (sizeof(T) == 8) return static_cast<uint64_t>(__double_as_longlong(term)) == uint64_t{1} << 63;
  }
};

template <class T>
struct RecurrenceParams : ScanParams<T, T> {
  const T* coefficients;  // Null: all are `coefficient`.
  T coefficient;
  const uint64_t* offsets;  // ScanArgs::offsets of several segments. Null: arrays have one length.
  uint64_t num_arrays;
};

// For arrays that do not stand interleaved.
template <class T>
RecurrenceParams<T> RecurrenceParamsOf(const ScanArgs& args, const LaunchContext& context) {
  RecurrenceParams<T> params = {ScanParamsOf<T, T, Op::kLinearRecurrence>(args, context),
                                static_cast<const T*>(args.coefficients), args.coefficient.As<T>(),
                                args.num_arrays > 1 ? args.offsets : nullptr, args.num_arrays};
  params.aligned &= HasAlignedRuns(params.coefficients);
  return params;
}

// Terms, and their coefficients.
template <class T>
class TileItems<Op::kLinearRecurrence, T, T> {
 public:
  using Params = RecurrenceParams<T>;

  __device__ void Load(const Params& p, const ArrayItems& array, uint64_t tile_begin, int num_valid) {
    LoadTile(TileView<const T>(p.in + array.begin, array.count, tile_begin, p.reverse), num_valid, T{}, p.aligned,
             terms_);
    if (p.coefficients != nullptr) {
      LoadTile(TileView<const T>(p.coefficients + array.begin, array.count, tile_begin, p.reverse), num_valid, T{},
               p.aligned, coefficients_);
      return;
    }
#pragma unroll
    for (auto& run : coefficients_) {
#pragma unroll
      for (T& coefficient : run.items) coefficient = p.coefficient;
    }
  }
  __device__ Step<T> At(int row, int i) const { return {coefficients_[row].items[i], terms_[row].items[i]}; }

 private:
  ThreadRuns<T> terms_;
  ThreadRuns<T> coefficients_;
};

// The same in the stages of a ring: terms, and coefficients unless all are one. The sizes are by measurement: with
// twice as many stages of half the size it is slower by 4 to 9 %, with more or fewer warps that look back by 1 to 23 %.
template <class T>
struct RingElements<Op::kLinearRecurrence, T, T>
    : RingResults<Operator<Op::kLinearRecurrence, T>, ScanRun<Operator<Op::kLinearRecurrence, T>, Step<T>, T>>,
      LeafByLeaf<RingElements<Op::kLinearRecurrence, T, T>> {
  using Params = RecurrenceParams<T>;
  using Shape = RingScanShape<RingTileShape<RingShape<T, 6>>, 8, sizeof(T) == 4 ? 8 : 2, 2>;
  using Run = ScanRun<Operator<Op::kLinearRecurrence, T>, Step<T>, T>;

  T terms[Shape::kStages][Shape::kStageItems];
  T coefficients[Shape::kStages][Shape::kStageItems];

  static bool Serves(const Params& p) {
    return !p.reverse && IsBulkAligned(p.in) && IsBulkAligned(p.coefficients) && IsBulkAligned(p.out);
  }

  static __device__ void Prefetch(const Params& p, uint32_t ticket) {
    PrefetchTicket<Shape>(ticket, p.in, p.num_items);
    if (p.coefficients != nullptr) PrefetchTicket<Shape>(ticket, p.coefficients, p.num_items);
  }
  __device__ void LoadStage(const Params& p, RingState<Shape::kStages>& ring, uint32_t stage, uint64_t begin) {
    const BulkItems bulk = RingElements::BulkPart(p, begin);
    if (p.coefficients == nullptr || bulk.end == 0) {
      return LoadItems(ring, stage, terms[stage], p.in + begin, bulk);
    }
    Barrier& loaded = ring.loaded[stage];
    const uint32_t num_bytes = bulk.end * sizeof(T);
    loaded.ArriveExpecting(2 * num_bytes);
    BulkLoad(terms[stage], p.in + begin, num_bytes, &loaded);
    BulkLoad(coefficients[stage], p.coefficients + begin, num_bytes, &loaded);
  }

  __device__ void LoadElement(const Params& p, uint32_t stage, uint64_t begin, uint32_t item) {
    terms[stage][item] = p.in[begin + item];
    if (p.coefficients != nullptr) coefficients[stage][item] = p.coefficients[begin + item];
  }

  __device__ void LoadRun(const Params& p, uint32_t stage, uint64_t, int leaf, Step<T> (&elements)[4]) const {
    const int first_item = leaf * Shape::kLeafItems + 4 * LaneOfWarp();
    T of_run[4];
    prefixd::cuda::LoadRun(&terms[stage][first_item], of_run);
#pragma unroll
    for (int i = 0; i < 4; ++i) elements[i] = {p.coefficient, of_run[i]};
    if (p.coefficients == nullptr) return;
    prefixd::cuda::LoadRun(&coefficients[stage][first_item], of_run);
#pragma unroll
    for (int i = 0; i < 4; ++i) elements[i].coefficient = of_run[i];
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RECURRENCE_CUH_
