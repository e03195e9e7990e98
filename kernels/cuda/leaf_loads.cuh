// Leaves that begin anywhere, on their way to a warp: some at once, each for a few lanes, of which each has runs that
// follow each other. They come to shared memory in whole words, and a lane moves its items to where they belong.
#ifndef PREFIXD_KERNELS_CUDA_LEAF_LOADS_CUH_
#define PREFIXD_KERNELS_CUDA_LEAF_LOADS_CUH_

#include <cstdint>
#include <cstring>

#include "kernels/association.h"
#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

template <class In>
struct LeafShape {
  static constexpr int kLaneRuns = sizeof(In) == 8 ? 2 : 4;  // 64 bytes, at most.
  static constexpr int kLaneItems = kLaneRuns * kRunItems;
  static constexpr int kLanes = kJoinSlots / kLaneRuns;  // For a leaf.
  static constexpr int kLeaves = kWarpThreads / kLanes;  // At once.
  static constexpr int kLaneWords = kLaneItems * sizeof(In) / kCopyWordBytes;
  static constexpr int kLeafWords = kLaneWords * kLanes;
  static constexpr int kStepWords = kLeafWords * kLeaves;
  // A leaf that begins within a word needs one more word: these stand at the end.
  static constexpr uint32_t kStepBytes = (kStepWords + kLeaves) * kCopyWordBytes;
  static constexpr uint32_t kWarpBytes = 2 * kStepBytes;  // For what is worked on, and what is on its way.

  // Words that lanes read at once would meet in a bank: they have another order.
  static __device__ int PlaceOf(int word) { return word ^ (word / 8 % kLaneWords); }
};

// What a lane knows of a leaf. Of one that does not exist: num_items is 0.
struct Leaf {
  int at = 0;  // Its first item, from where all of them begin.
  int num_items = 0;
};

// A warp's leaves: where they are, that of leaf l in lane l, in bytes.
template <class In>
class LeafLoads {
 public:
  using Shape = LeafShape<In>;

  // in: where all begin; what stands before it in its word is read too. end: behind the last item that there is memory
  // for.
  __device__ LeafLoads(const In* in, const Leaf& leaf, const In* end) {
    const auto address = reinterpret_cast<uintptr_t>(in);
    const int at = static_cast<int>(address % kCopyWordBytes) + leaf.at * static_cast<int>(sizeof(In));
    words_ = reinterpret_cast<const unsigned char*>(address / kCopyWordBytes * kCopyWordBytes);
    word_ = static_cast<uint32_t>(at / kCopyWordBytes * kCopyWordBytes);
    begin_ = at % kCopyWordBytes;
    end_ = leaf.num_items == 0 ? 0 : begin_ + leaf.num_items * static_cast<int>(sizeof(In));
    const int whole = (end_ + kCopyWordBytes - 1) / kCopyWordBytes * kCopyWordBytes;
    all_whole_ = __all_sync(kAllLanes, words_ + word_ + whole <= reinterpret_cast<const unsigned char*>(end));
    is_shifted_ = __any_sync(kAllLanes, end_ != 0 && begin_ != 0);
  }

  // Whether any leaf begins within a word.
  __device__ bool is_shifted() const { return is_shifted_; }
  // A leaf's first byte in its first word, and its end.
  __device__ int Begin(int leaf) const { return ShuffleFrom(begin_, leaf); }
  __device__ int End(int leaf) const { return ShuffleFrom(end_, leaf); }

  // Begins to copy Shape::kLeaves leaves, from the first on.
  __device__ void Copy(int first, SharedAddress s_step) const {
    all_whole_ ? Copy<true>(first, s_step) : Copy<false>(first, s_step);
  }

 private:
  // kWhole: whole words can be read, whatever of them belongs to the leaf.
  template <bool kWhole>
  __device__ void Copy(int first, SharedAddress s_step) const {
    const auto copy = [](SharedAddress to, const unsigned char* from, int num_bytes) {
      if (num_bytes <= 0) return;
      kWhole || num_bytes >= kCopyWordBytes ? CopyWord(to, from) : CopyBytes(to, from, num_bytes);
    };
    const int lane_byte = LaneOfWarp() % Shape::kLeafWords * kCopyWordBytes;
    const SharedAddress s_mine = s_step + Shape::PlaceOf(LaneOfWarp()) * kCopyWordBytes;
    const unsigned char* const my_words = words_ + lane_byte;
#pragma unroll(kWhole ? Shape::kStepWords / kWarpThreads : 1)
    for (int i = 0; i < Shape::kStepWords; i += kWarpThreads) {
      const int leaf = first + (i + LaneOfWarp()) / Shape::kLeafWords;
      const int byte = i % Shape::kLeafWords * kCopyWordBytes;
      copy(s_mine + i * kCopyWordBytes, my_words + (ShuffleFrom(word_, leaf) + byte), End(leaf) - byte - lane_byte);
    }
    constexpr int kLeafBytes = Shape::kLeafWords * kCopyWordBytes;
    const int leaf = first + LaneOfWarp();
    const int rest = End(leaf) - kLeafBytes;
    const unsigned char* const from = words_ + (ShuffleFrom(word_, leaf) + kLeafBytes);
    if (LaneOfWarp() < Shape::kLeaves) copy(s_step + (Shape::kStepWords + LaneOfWarp()) * kCopyWordBytes, from, rest);
  }

  const unsigned char* words_;  // The word that the first item of all is in.
  uint32_t word_;               // The leaf's first word, from there on;
  int begin_;                   // where it begins in that word,
  int end_;                     // and its end, from the word's beginning on.
  bool all_whole_;
  bool is_shifted_;
};

// Moves all down by up to 15 bytes, whole items.
template <class In, int kBits>
__device__ void ShiftItems(int num_bytes, uint32_t (&bits)[kBits]) {
  const bool by_8 = (num_bytes & 8) != 0, by_4 = (num_bytes & 4) != 0;
#pragma unroll
  for (int i = 0; i + 2 < kBits; ++i) bits[i] = by_8 ? bits[i + 2] : bits[i];
  if constexpr (sizeof(In) <= 4) {
#pragma unroll
    for (int i = 0; i + 3 < kBits; ++i) bits[i] = by_4 ? bits[i + 1] : bits[i];
  }
  if constexpr (sizeof(In) < 4) {
#pragma unroll
    for (int i = 0; i + 4 < kBits; ++i) bits[i] = __funnelshift_r(bits[i], bits[i + 1], num_bytes % 4 * 8);
  }
}

// The lane's items of a leaf in shared memory; what stands behind the leaf's end is anything.
template <class In>
__device__ void LoadLeafItems(SharedAddress s_step, int begin, bool is_shifted,
                              In (&items)[LeafShape<In>::kLaneItems]) {
  using Shape = LeafShape<In>;
  constexpr int kLaneWords = Shape::kLaneWords;
  uint32_t bits[(kLaneWords + 1) * 4];
  const auto load = [&](int word, int place) {
    const uint4 v = LoadShared(s_step + place * kCopyWordBytes);
    bits[4 * word] = v.x, bits[4 * word + 1] = v.y, bits[4 * word + 2] = v.z, bits[4 * word + 3] = v.w;
  };
#pragma unroll
  for (int word = 0; word < kLaneWords; ++word) load(word, Shape::PlaceOf(LaneOfWarp() * kLaneWords + word));
  if (is_shifted) {
    const bool is_last = LaneOfWarp() % Shape::kLanes == Shape::kLanes - 1;
    load(kLaneWords,
         is_last ? Shape::kStepWords + LaneOfWarp() / Shape::kLanes : Shape::PlaceOf((LaneOfWarp() + 1) * kLaneWords));
    ShiftItems<In>(begin, bits);
  }
  memcpy(items, bits, sizeof(items));
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_LEAF_LOADS_CUH_
