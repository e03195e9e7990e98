// The ring scan (ring_scan.cuh) of an array that begins anywhere, or is scanned from its end.
//
// stage_words.cuh says how its elements come to the lanes, and results to memory: 16 bytes at a time; only what is left
// at both ends of a warp's leaves is stored item by item. Where an array is scanned from its end, lane 31 has what
// stands first in memory, and each run is turned around.
#ifndef PREFIXD_KERNELS_CUDA_RING_ANYWHERE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_ANYWHERE_CUH_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_elements.cuh"
#include "kernels/cuda/ring_scan_shape.cuh"
#include "kernels/cuda/scan_run.cuh"
#include "kernels/cuda/stage_words.cuh"
#include "kernels/cuda/tile_io.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// Turns a run around, whose items of kItemBytes are in elements of that size or, if they are narrower, in words.
template <int kItemBytes, class Element>
__device__ void Reverse(Element (&elements)[4]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const Element other = elements[i];
    elements[i] = elements[3 - i];
    elements[3 - i] = other;
  }
  if constexpr (kItemBytes < sizeof(Element)) {
    static_assert(sizeof(Element) == sizeof(uint32_t));
#pragma unroll
    for (Element& word : elements) word = __byte_perm(word, 0, kItemBytes == 1 ? 0x0123 : 0x1032);
  }
}

// RingElements where the array begins anywhere, or is scanned from its end.
template <Op kOp, class In, class Out>
struct RingElementsAnywhere : RingResults<Operator<kOp, Out>, ScanRun<Operator<kOp, Out>, In, Out>> {
  using Params = ScanParams<In, Out>;
  using Shape = typename RingScanShapeOf<Operator<kOp, Out>, In, Out>::Type;
  using Run = ScanRun<Operator<kOp, Out>, In, Out>;
  using Element = typename Run::Element;

  alignas(kBulkAlignment) unsigned char bytes[Shape::kStages][Shape::kStageBytes + kBulkAlignment];

  static bool Serves(const Params&) { return true; }

  static __device__ void Prefetch(const Params& p, uint32_t ticket) {
    for (int sub = 0; sub < Shape::kTicketStages; ++sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      if (Shape::IsWhole(begin, p.num_items)) PrefetchWords(StageOf(p, begin), Shape::kStageBytes);
    }
  }

  __device__ void LoadStage(const Params& p, RingState<Shape::kStages>& ring, uint32_t stage, uint64_t begin) {
    if (!Shape::IsWhole(begin, p.num_items)) return ring.loaded[stage].Arrive();
    const uint64_t items_behind = p.reverse ? begin : p.num_items - begin - Shape::kStageItems;
    const WordsOfStage<In> words(bytes[stage], StageOf(p, begin), Shape::kStageBytes, items_behind);
    ring.loaded[stage].ArriveExpecting(words.num_bytes());
    words.Load(&ring.loaded[stage]);
  }

  __device__ void LoadElement(const Params& p, uint32_t stage, uint64_t begin, int item) {
    auto* const s_items = reinterpret_cast<In*>(bytes[stage] + BytesIntoWord(StageOf(p, begin)));
    s_items[p.reverse ? Shape::kStageItems - 1 - item : item] =
        begin + item < p.num_items ? p.in[PlaceOf(p, begin + item)] : In{};
  }

  template <int kRows, class Visit>
  __device__ void VisitRuns(const Params& p, uint32_t stage, uint64_t begin, int first_leaf, Visit&& visit) const {
    const int row = p.reverse ? Shape::kStageLeaves - 1 - first_leaf : first_leaf;
    const unsigned char* s_row = bytes[stage] + BytesIntoWord(StageOf(p, begin)) + row * Shape::kLeafItems * sizeof(In);
    VisitRowsAnywhere<Element, sizeof(In), kRows>(s_row, p.reverse, [&](int i, Element(&elements)[4]) {
      if (p.reverse) Reverse<sizeof(In)>(elements);
      visit(i, elements);
    });
  }

  template <int kRows, class Finish>
  static __device__ void StoreLeaves(const Params& p, uint64_t first_item, Run (&runs)[kRows], Finish&& finish) {
    constexpr int kWords = 4 * sizeof(typename Run::Result) / sizeof(uint32_t);
    uint32_t words[kRows][kWords];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      finish(row);
      typename Run::Result results[4];
      runs[row].GetResults(results);
      if (p.reverse) Reverse<sizeof(Out)>(results);
      memcpy(words[row], results, sizeof(results));
    }
    Out* const first_row = p.out + (p.reverse ? p.num_items - first_item - Shape::kLeafItems : first_item);
    RowStore<Out, kRows, kWords>(reinterpret_cast<unsigned char*>(first_row), p.reverse).Store(words);
  }

  static __device__ void StoreItems(const Params& p, uint64_t first_item, const Run& run) {
    typename Run::Result packed[4];
    run.GetResults(packed);
    Out results[sizeof(packed) / sizeof(Out)];
    memcpy(results, packed, sizeof(results));
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(results) / sizeof(Out)); ++i) {
      if (first_item + i < p.num_items) p.out[PlaceOf(p, first_item + i)] = results[i];
    }
  }

 private:
  // Where an item of the scan stands.
  static __device__ uint64_t PlaceOf(const Params& p, uint64_t item) {
    return p.reverse ? p.num_items - 1 - item : item;
  }
  // Where in memory the stage begins that has the scan's items from `begin` on. Of a stage that is not whole, nothing
  // may be read there.
  static __device__ const unsigned char* StageOf(const Params& p, uint64_t begin) {
    const auto array = reinterpret_cast<const unsigned char*>(p.in);
    return p.reverse ? array + (p.num_items - begin) * sizeof(In) - Shape::kStageBytes : array + begin * sizeof(In);
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_ANYWHERE_CUH_
