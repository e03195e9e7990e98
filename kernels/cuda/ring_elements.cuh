// What the stages of the ring scan (ring_scan.cuh) hold, how it gets to the lanes, and how results get to memory.
//
// RingScan takes a class Elements, which lies in shared memory, and has
//   Params     the kernel's parameters
//   Shape      its sizes (ring_scan_shape.cuh)
//   Run        a lane's run
//   Operator   what combines
//   Prefetch, LoadStage       called by the thread that loads
//   IsWhole                   whether all items of a stage exist
//   BulkPart, LoadElement     of a stage that is not whole: what LoadStage brings, and the rest, one at a time
//   VisitRuns, StoreLeaves    of whole stages, several leaves at a time
//   StoreItems, LoadStart, KeepCarry
#ifndef PREFIXD_KERNELS_CUDA_RING_ELEMENTS_CUH_
#define PREFIXD_KERNELS_CUDA_RING_ELEMENTS_CUH_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/operators.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_scan_shape.cuh"
#include "kernels/cuda/scan_leaf.cuh"
#include "kernels/cuda/scan_run.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// What stands before the first element, and where results go: to one array.
template <class TheOperator, class Run>
struct RingResults {
  using Operator = TheOperator;

  // Called by all threads of the block, before any of them meet.
  template <class In, class Out>
  static __device__ auto LoadStart(const ScanParams<In, Out>& p) {
    return prefixd::cuda::LoadStart<Operator>(p);
  }

  // Stores the results of a leaf, all of which exist. Called by all lanes.
  template <class In, class Out>
  static __device__ void StoreLeaf(const ScanParams<In, Out>& p, uint64_t leaf_begin, const Run& run) {
    using Result = typename Run::Result;
    Result results[4];
    run.GetResults(results);
    StoreRow(reinterpret_cast<Result*>(p.out + leaf_begin), results);
  }

  // Stores those results of a run that exist.
  template <class In, class Out>
  static __device__ void StoreItems(const ScanParams<In, Out>& p, uint64_t first_item, const Run& run) {
    Out results[kRunItems<Out>];
    GetResults(run, results);
#pragma unroll
    for (int i = 0; i < kRunItems<Out>; ++i) {
      if (first_item + i < p.num_items) p.out[first_item + i] = results[i];
    }
  }

  // Writes carry_out. Needs: the run has the array's last item.
  template <class In, class Out>
  static __device__ void KeepCarry(const ScanParams<In, Out>& p, uint64_t first_item, const Run& run) {
    Out results[kRunItems<Out>];
    GetResults(run, results);
#pragma unroll
    for (int i = 0; i < kRunItems<Out>; ++i) {
      if (first_item + i != p.num_items - 1) continue;
      __threadfence();
      if constexpr (requires { typename Operator::Carry; }) {
        if constexpr (requires { run.items; }) {
          StoreCarry<Operator>(p, run.items[i]);
        } else {  // By min and max a carry is an element.
          StoreCarry<Operator>(p, Operator::Load(results[i]));
        }
      } else {
        *static_cast<Out*>(p.carry_out) = results[i];
      }
    }
  }

 private:
  template <class Out>
  static constexpr int kRunItems = 4 * sizeof(typename Run::Result) / sizeof(Out);

  template <class Out>
  static __device__ void GetResults(const Run& run, Out (&results)[kRunItems<Out>]) {
    typename Run::Result packed[4];
    run.GetResults(packed);
    static_assert(sizeof(packed) == sizeof(results));
    memcpy(results, packed, sizeof(results));
  }
};

// For Elements, from which it is derived, whose leaves are loaded and stored one by one, from the first item on.
template <class Elements>
class LeafByLeaf {
 public:
  template <class Params>
  static __device__ bool IsWhole(const Params& p, uint64_t begin) {
    return Elements::Shape::IsWhole(begin, p.num_items);
  }
  template <class Params>
  static __device__ BulkItems BulkPart(const Params& p, uint64_t begin) {
    constexpr uint32_t kWordItems = kBulkAlignment / sizeof(*p.in);
    return {0, NumStageItems<typename Elements::Shape>(begin, p.num_items) / kWordItems * kWordItems};
  }

  // Calls visit(row, elements) for each of kRows leaves of the stage that begins at item `begin`, with the lane's run.
  // Called by all lanes.
  template <int kRows, class Params, class Visit>
  __device__ void VisitRuns(const Params& p, uint32_t stage, uint64_t begin, int first_leaf, Visit&& visit) const {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      typename Elements::Run::Element elements[4];
      Derived().LoadRun(p, stage, begin, first_leaf + row, elements);
      visit(row, elements);
    }
  }

  // Stores kRows leaves, all of whose items exist; finish(row) makes a run its results. Called by all lanes.
  template <int kRows, class Params, class Run, class Finish>
  __device__ void StoreLeaves(const Params& p, uint64_t first_item, Run (&runs)[kRows], Finish&& finish) const {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      finish(row);
      Derived().StoreLeaf(p, first_item + row * Elements::Shape::kLeafItems, runs[row]);
      // The rows are stored one by one: bursts of stores would get in the way of loads.
      __syncwarp();
    }
  }

 private:
  __device__ const Elements& Derived() const { return static_cast<const Elements&>(*this); }
};

// The elements in the stages, and how they get there and to the lanes: those of one array. Operators whose elements
// or results stand in several arrays have their own.
template <Op kOp, class In, class Out>
struct RingElements : RingResults<Operator<kOp, Out>, ScanRun<Operator<kOp, Out>, In, Out>>,
                      LeafByLeaf<RingElements<kOp, In, Out>> {
  using Params = ScanParams<In, Out>;
  using Shape = typename RingScanShapeOf<Operator<kOp, Out>, In, Out>::Type;
  using Run = ScanRun<Operator<kOp, Out>, In, Out>;

  In items[Shape::kStages][Shape::kStageItems];

  static bool Serves(const Params& p) { return !p.reverse && IsBulkAligned(p.in) && IsBulkAligned(p.out); }

  // Called by one thread.
  static __device__ void Prefetch(const Params& p, uint32_t ticket) {
    PrefetchTicket<Shape>(ticket, p.in, p.num_items);
  }
  __device__ void LoadStage(const Params& p, RingState<Shape::kStages>& ring, uint32_t stage, uint64_t begin) {
    LoadItems(ring, stage, items[stage], p.in + begin, RingElements::BulkPart(p, begin));
  }
  __device__ void LoadElement(const Params& p, uint32_t stage, uint64_t begin, uint32_t item) {
    items[stage][item] = p.in[begin + item];
  }

  // The lane's run of a leaf of the stage that begins at item `begin`. Called by all lanes.
  __device__ void LoadRun(const Params&, uint32_t stage, uint64_t, int leaf,
                          typename Run::Element (&elements)[4]) const {
    const In* leaf_items = &items[stage][leaf * Shape::kLeafItems];
    prefixd::cuda::LoadRun(reinterpret_cast<const typename Run::Element*>(leaf_items) + 4 * LaneOfWarp(), elements);
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_ELEMENTS_CUH_
