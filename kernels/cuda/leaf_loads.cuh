// Leaves that begin anywhere, on their way to a warp, which works on some at once: each has a lane or a few, which go
// through its runs one after the other.
//
// Leaves come to shared memory word by word, a warp's words next to each other. What a lane goes through has an odd
// number of words, with one that is free: so all lanes have banks of their own.
#ifndef PREFIXD_KERNELS_CUDA_LEAF_LOADS_CUH_
#define PREFIXD_KERNELS_CUDA_LEAF_LOADS_CUH_

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/association.h"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In>
struct LeafShape {
  using Word = std::conditional_t<sizeof(In) == 8, uint64_t, uint32_t>;
  static constexpr uint32_t kWordBytes = sizeof(Word);
  static constexpr int kLanes = sizeof(In) > 2 ? sizeof(In) / 2 : 1;  // For a leaf.
  static constexpr int kLeaves = kWarpThreads / kLanes;               // At once.
  static constexpr int kLaneItems = kLeafItems / kLanes;
  static constexpr int kLaneRuns = kLaneItems / kRunItems;
  static constexpr int kLaneWords = kLaneItems * sizeof(In) / kWordBytes;
  static constexpr int kLeafWords = kLaneWords * kLanes;
  // Items of 1 and 2 bytes may begin within a word; then the leaf has a word more, in the free place.
  static constexpr bool kIsShifted = sizeof(In) < kWordBytes;
  static_assert(!kIsShifted || kLanes == 1);
  static constexpr uint32_t kLaneBytes = (kLaneWords + 1) * kWordBytes;
  static_assert(kLaneWords % 2 == 0);
  static constexpr uint32_t kStepBytes = kWarpThreads * kLaneBytes;

  static __device__ int LeafOfLane() { return LaneOfWarp() / kLanes; }
  static __device__ int PartOfLane() { return LaneOfWarp() % kLanes; }
  // Where an item of a step's leaf is, in bytes, if the leaf begins with a word.
  static constexpr __host__ __device__ uint32_t PlaceOfItem(int leaf, int item) {
    return (leaf * kLanes + item / kLaneItems) * kLaneBytes + item % kLaneItems * uint32_t{sizeof(In)};
  }
  // Where a word is.
  static constexpr __host__ __device__ uint32_t PlaceOf(int leaf, int word) {
    return (leaf * kLanes + word / kLaneWords) * kLaneBytes + word % kLaneWords * kWordBytes;
  }
};

// What a lane knows of a leaf. Of one that does not exist: num_items is 0.
struct Leaf {
  int at = 0;  // Its first item, from where all of them begin.
  int num_items = 0;
};

// A warp's leaves: where they are, that of leaf l in lane l.
template <class In>
class LeafLoads {
 public:
  using Shape = LeafShape<In>;

  // in: where all begin; what stands before it in its word is read too. end: behind the last item that there is memory
  // for.
  __device__ LeafLoads(const In* in, const Leaf& leaf, const In* end) {
    const auto address = reinterpret_cast<uintptr_t>(in);
    const uint32_t at = address % Shape::kWordBytes + leaf.at * uint32_t{sizeof(In)};
    words_ = reinterpret_cast<const unsigned char*>(address / Shape::kWordBytes * Shape::kWordBytes);
    word_ = at / Shape::kWordBytes * Shape::kWordBytes;
    begin_ = at % Shape::kWordBytes;
    const uint32_t num_bytes = leaf.num_items == 0 ? 0 : begin_ + leaf.num_items * uint32_t{sizeof(In)};
    num_words_ = static_cast<int>((num_bytes + Shape::kWordBytes - 1) / Shape::kWordBytes);
    const auto* const end_of_memory = reinterpret_cast<const unsigned char*>(end);
    const unsigned char* const my_words = words_ + word_;
    if (Shape::kIsShifted && my_words + num_words_ * Shape::kWordBytes > end_of_memory) {
      --num_words_;
      num_rest_ = static_cast<int>(num_bytes % Shape::kWordBytes);
    }
    const int num_leaves = __popc(__ballot_sync(kAllLanes, leaf.num_items > 0));
    const int num_whole = __popc(__ballot_sync(kAllLanes, leaf.num_items == kLeafItems));
    copies_all_ = num_leaves - num_whole <= num_leaves / 8 &&
                  __all_sync(kAllLanes, my_words + Shape::kLaneBytes * Shape::kLanes <= end_of_memory);
  }

  // The leaf's first byte in its first word.
  __device__ uint32_t begin() const { return begin_; }

  // Begins to copy Shape::kLeaves leaves, from the first on, of num_leaves.
  __device__ void Copy(int first, int num_leaves, SharedAddress s_step) const {
    copies_all_ ? Copy<true>(first, num_leaves, s_step) : Copy<false>(first, num_leaves, s_step);
  }

 private:
  using Word = typename Shape::Word;
  static constexpr int kTurnLeaves = 4;  // That are copied whether they exist or not.
  static constexpr int kCopies = Shape::kLeafWords / kWarpThreads;

  template <bool kAll>
  __device__ void Copy(int first, int num_leaves, SharedAddress s_step) const {
    const unsigned char* const mine = words_ + LaneOfWarp() * Shape::kWordBytes;
    const SharedAddress s_mine = s_step + LaneOfWarp() * Shape::kWordBytes;
    for (int i = 0; i < Shape::kLeaves && first + i < num_leaves; i += kTurnLeaves) {
      CopyTurn<kAll>(mine, first + i, s_mine + Shape::PlaceOf(i, 0),
                     std::make_integer_sequence<int, kTurnLeaves * kCopies>());
    }
    if constexpr (Shape::kIsShifted) {
      const SharedAddress s_leaf = s_step + Shape::PlaceOf(LaneOfWarp(), 0);
      const unsigned char* const leaf = words_ + word_;
      constexpr uint32_t kLeafBytes = Shape::kLeafWords * Shape::kWordBytes;
      CopyWordIf<Word, kLeafBytes, kLeafBytes>(kAll || num_words_ > Shape::kLeafWords, s_leaf, leaf);
      const int at = num_words_ * Shape::kWordBytes;
      if (!kAll && num_rest_ > 0) CopyBytes(s_leaf + at, leaf + at, num_rest_);
    }
  }
  template <bool kAll, int... kIndices>
  __device__ void CopyTurn(const unsigned char* mine, int first, SharedAddress s_mine,
                           std::integer_sequence<int, kIndices...> /*indices*/) const {
    const unsigned char* from[kTurnLeaves];
    int num_words[kTurnLeaves] = {};
#pragma unroll
    for (int i = 0; i < kTurnLeaves; ++i) {
      from[i] = mine + ShuffleFrom(word_, first + i);
      if (!kAll) num_words[i] = ShuffleFrom(num_words_, first + i) - LaneOfWarp();
    }
    const auto copy = [&]<int kIndex>() {
      constexpr int kLeaf = kIndex / kCopies, kWord = kIndex % kCopies * kWarpThreads;
      CopyWordIf<Word, Shape::PlaceOf(kLeaf, kWord), kWord * Shape::kWordBytes>(kAll || num_words[kLeaf] > kWord,
                                                                                s_mine, from[kLeaf]);
    };
    (copy.template operator()<kIndices>(), ...);
  }

  const unsigned char* words_;  // The word that the first item of all is in.
  uint32_t word_;               // The leaf's first word, from there on, in bytes;
  uint32_t begin_;              // and where it begins in that word.
  int num_words_;               // That can be read as such. Behind them there may be some bytes.
  int num_rest_ = 0;
  bool copies_all_;  // Whole leaves, whatever of them exists: there is memory, and it saves conditions.
};

// Runs in shared memory that follow each other, from any item on. What does not exist of them is anything.
template <class In>
class RunReader {
 public:
  __device__ explicit RunReader(SharedAddress first)
      : words_(first / kWordBytes * kWordBytes), shift_(first % kWordBytes * 8) {
    if constexpr (sizeof(In) < 4) word_ = LoadWord<uint32_t>(0);
  }
  __device__ void Next(In (&run)[kRunItems]) {
    using Word = typename LeafShape<In>::Word;
    constexpr int kWords = kRunItems * sizeof(In) / kWordBytes;
    Word words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if constexpr (sizeof(In) < 4) {
        const auto next = LoadWord<uint32_t>(i + 1);
        words[i] = __funnelshift_r(word_, next, shift_);
        word_ = next;
      } else {
        words[i] = LoadWord<Word>(i);
      }
    }
    words_ += kWords * kWordBytes;
    memcpy(run, words, sizeof(run));
  }

 private:
  static constexpr uint32_t kWordBytes = LeafShape<In>::kWordBytes;

  // In its turn among copies.
  template <class Word>
  __device__ Word LoadWord(int i) const {
    Word word;
    if constexpr (sizeof(Word) == 8) {
      asm volatile("ld.shared.u64 %0, [%1];" : "=l"(word) : "r"(words_ + i * kWordBytes));
    } else {
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(words_ + i * kWordBytes));
    }
    return word;
  }

  SharedAddress words_;
  const uint32_t shift_;
  uint32_t word_ = 0;
};

// The tree of runs that follow each other, from an item in shared memory on; those from num_runs on count as neutral.
template <class Operator, class In, int kRuns, class Item = typename Operator::Item>
__device__ Item TreeOfRuns(SharedAddress s_items, int num_runs, Item neutral) {
  RunReader<In> reader(s_items);
  Item trees[kRuns];
#pragma unroll
  for (int r = 0; r < kRuns; ++r) {
    In items[kRunItems];
    reader.Next(items);
    Item run = Operator::Load(items[0]);
#pragma unroll
    for (int k = 1; k < kRunItems; ++k) run = Operator::Combine(run, Operator::Load(items[k]));
    trees[r] = r < num_runs ? run : neutral;
    // Joins what is complete with what stands before it.
#pragma unroll
    for (int width = 1; width < kRuns; width *= 2) {
      if ((r + 1) % (2 * width) == 0) {
        trees[r + 1 - 2 * width] = Operator::Combine(trees[r + 1 - 2 * width], trees[r + 1 - width]);
      }
    }
  }
  return trees[0];
}
// The value of a run of which num_items exist.
template <class Operator, class In>
__device__ typename Operator::Item ValueOfRun(SharedAddress s_items, int num_items) {
  In items[kRunItems];
  RunReader<In>(s_items).Next(items);
  auto value = Operator::Load(items[0]);
#pragma unroll
  for (int k = 1; k < kRunItems; ++k) {
    if (k < num_items) value = Operator::Combine(value, Operator::Load(items[k]));
  }
  return value;
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_LEAF_LOADS_CUH_
