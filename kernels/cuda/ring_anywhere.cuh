// The ring scan (ring_scan.cuh) of an array that begins anywhere, or is scanned from its end.
//
// stage_words.cuh says how its elements come to the lanes, and results to memory: 16 bytes at a time; only what is left
// at both ends of a warp's leaves is stored item by item. Where the order is free, nothing is left: items are counted
// from the sector in which the first result stands, so that all leaves begin with sectors, and the first items do not
// exist. Where an array is scanned from its end, lane 31 has what stands first in memory, and each run is turned
// around.
#ifndef PREFIXD_KERNELS_CUDA_RING_ANYWHERE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_ANYWHERE_CUH_

#include <cstdint>
#include <cstring>
#include <type_traits>

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

// What memory is written by.
inline constexpr uint64_t kSectorBytes = 32;

// RingElements where the array begins anywhere, or is scanned from its end.
template <Op kOp, class In, class Out>
struct RingElementsAnywhere : RingResults<Operator<kOp, Out>, ScanRun<Operator<kOp, Out>, In, Out>> {
  using Params = ScanParams<In, Out>;
  using Shape = typename RingScanShapeOf<Operator<kOp, Out>, In, Out, /*kAnywhere=*/true>::Type;
  using Run = ScanRun<Operator<kOp, Out>, In, Out>;
  using Element = typename Run::Element;

  alignas(kBulkAlignment) unsigned char bytes[Shape::kStages][Shape::kStageBytes + kBulkAlignment];

  static bool Serves(const Params&) { return true; }

  // Whether leaves may begin anywhere, so that they can begin where results are aligned. Then missing items are
  // neutral.
  static constexpr bool kAlignsResults = Operator<kOp, Out>::kAnyOrder && std::is_same_v<In, Out>;

  static void AlignResults(Params* p) {
    if constexpr (kAlignsResults) {
      const uint64_t into_sector =
          reinterpret_cast<uintptr_t>(p->reverse ? p->out + p->num_items : p->out) % kSectorBytes;
      p->skipped = (p->reverse ? (kSectorBytes - into_sector) % kSectorBytes : into_sector) / sizeof(Out);
      p->num_items += p->skipped;
      if (p->reverse) return;
      p->in -= p->skipped;
      p->out -= p->skipped;
    }
  }

  static __device__ bool IsWhole(const Params& p, uint64_t begin) {
    return begin >= Skipped(p) && Shape::IsWhole(begin, p.num_items);
  }

  static __device__ void Prefetch(const Params& p, uint32_t ticket) {
    for (int sub = 0; sub < Shape::kTicketStages; ++sub) {
      const uint64_t begin = Shape::StageBegin(ticket, sub);
      if (IsWhole(p, begin)) PrefetchWords(StageOf(p, begin), Shape::kStageBytes);
    }
  }

  // The words of 16 bytes that have only items that exist. Nothing of wide elements: a stage has few of them, and what
  // it takes to find the words would slow down all stages.
  static __device__ BulkItems BulkPart(const Params& p, uint64_t begin) {
    if constexpr (sizeof(In) >= 4) return {0, 0};
    const uint32_t missing = Skipped(p) > begin ? static_cast<uint32_t>(Skipped(p) - begin) : 0;
    const uint32_t end = NumStageItems<Shape>(begin, p.num_items);
    // In bytes of the stage in memory, from the word on in which it begins.
    const uint32_t stage = BytesIntoWord(StageOf(p, begin));
    const uint32_t first_byte = stage + (p.reverse ? Shape::kStageItems - end : missing) * sizeof(In);
    const uint32_t end_byte = stage + (p.reverse ? Shape::kStageItems - missing : end) * sizeof(In);
    const uint32_t word = (first_byte + kBulkAlignment - 1) / kBulkAlignment * kBulkAlignment;
    const uint32_t words_end = end_byte / kBulkAlignment * kBulkAlignment;
    if (word >= words_end) return {0, 0};
    const uint32_t first_item = (word - stage) / sizeof(In), end_item = (words_end - stage) / sizeof(In);
    return p.reverse ? BulkItems{Shape::kStageItems - end_item, Shape::kStageItems - first_item}
                     : BulkItems{first_item, end_item};
  }

  __device__ void LoadStage(const Params& p, RingState<Shape::kStages>& ring, uint32_t stage, uint64_t begin) {
    const unsigned char* const first = StageOf(p, begin);
    if (!IsWhole(p, begin)) {
      const BulkItems bulk = BulkPart(p, begin);
      const uint32_t place = p.reverse ? Shape::kStageItems - bulk.end : bulk.first;
      return LoadItems(ring, stage, ItemsOf(stage, first) + place, reinterpret_cast<const In*>(first) + place, bulk);
    }
    const uint64_t items_behind = p.reverse ? begin - Skipped(p) : p.num_items - begin - Shape::kStageItems;
    const WordsOfStage<In> words(bytes[stage], first, Shape::kStageBytes, items_behind);
    ring.loaded[stage].ArriveExpecting(words.num_bytes());
    words.Load(&ring.loaded[stage]);
  }

  __device__ void LoadElement(const Params& p, uint32_t stage, uint64_t begin, uint32_t item) {
    ItemsOf(stage, StageOf(p, begin))[p.reverse ? Shape::kStageItems - 1 - item : item] =
        Exists(p, begin + item) ? p.in[PlaceOf(p, begin + item)] : Missing(p);
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
    const RowStore<Out, kRows, kWords> store(reinterpret_cast<unsigned char*>(first_row), p.reverse);
    if constexpr (kAlignsResults) {
      store.StoreAligned(words);
    } else {
      store.Store(words);
    }
  }

  static __device__ void StoreItems(const Params& p, uint64_t first_item, const Run& run) {
    typename Run::Result packed[4];
    run.GetResults(packed);
    Out results[sizeof(packed) / sizeof(Out)];
    memcpy(results, packed, sizeof(results));
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(results) / sizeof(Out)); ++i) {
      if (Exists(p, first_item + i)) p.out[PlaceOf(p, first_item + i)] = results[i];
    }
  }

 private:
  static __device__ uint64_t Skipped(const Params& p) { return kAlignsResults ? p.skipped : 0; }
  static __device__ bool Exists(const Params& p, uint64_t item) { return item >= Skipped(p) && item < p.num_items; }
  // What stands for an item that does not exist.
  static __device__ In Missing(const Params& p) {
    if constexpr (kAlignsResults) {
      return p.neutral;
    } else {
      return {};
    }
  }
  // The items of a stage that begins at `first` in memory.
  __device__ In* ItemsOf(uint32_t stage, const unsigned char* first) {
    return reinterpret_cast<In*>(bytes[stage] + BytesIntoWord(first));
  }
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
