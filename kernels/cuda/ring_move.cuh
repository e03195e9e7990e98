// Moves items out of a ring in shared memory to any place, by a warp: all but the ends by aligned stores of 16 bytes.
// The words at both ends may have bytes of other items, which are not used: racecheck reports that they are being
// written.
#ifndef PREFIXD_KERNELS_CUDA_RING_MOVE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_MOVE_CUH_

#include <cstdint>

#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// The 16 bytes that begin kSkip bytes into two words.
template <int kSkip>
__device__ uint4 MiddleOf(uint4 low, uint4 high) {
  const uint32_t units[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint32_t middle[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int unit = kSkip / 4 + i;
    middle[i] = kSkip % 4 == 0 ? units[unit] : __funnelshift_r(units[unit], units[unit + 1], kSkip % 4 * 8);
  }
  return {middle[0], middle[1], middle[2], middle[3]};
}

// Stores num_words words of 16 bytes from the ring of kRingWords, each made of two that follow each other there:
// without the first kSkip bytes of the one, and with as many of the other.
template <int kSkip, uint32_t kRingWords>
__device__ void MoveWordsFromRing(const uint4* s_words, uint32_t first, uint32_t num_words, uint4* to) {
  constexpr int kUnroll = 4;
  for (uint32_t base = 0; base < num_words; base += kUnroll * kWarpThreads) {
    uint4 words[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const uint32_t i = first + min(base + k * kWarpThreads + LaneOfWarp(), num_words - 1);
      const uint4 low = s_words[i % kRingWords];
      const uint4 high = kSkip == 0 ? low : s_words[(i + 1) % kRingWords];
      words[k] = MiddleOf<kSkip>(low, high);
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const uint32_t i = base + k * kWarpThreads + LaneOfWarp();
      if (i < num_words) to[i] = words[k];
      // The rows are stored one by one: bursts of stores would get in the way of loads.
      __syncwarp();
    }
  }
}

// The same for any number of bytes to skip, kSkip or more, which are a multiple of kItemBytes.
template <int kItemBytes, uint32_t kRingWords, int kSkip = 0>
__device__ void MoveWordsBehind(uint32_t skip, const uint4* s_words, uint32_t first, uint32_t num_words, uint4* to) {
  if constexpr (kSkip + kItemBytes >= 16) {
    MoveWordsFromRing<kSkip, kRingWords>(s_words, first, num_words, to);
  } else if (skip == kSkip) {
    MoveWordsFromRing<kSkip, kRingWords>(s_words, first, num_words, to);
  } else {
    MoveWordsBehind<kItemBytes, kRingWords, kSkip + kItemBytes>(skip, s_words, first, num_words, to);
  }
}

// Moves the `count` items from `begin` on of a ring of kRingItems to out.
// Needs: s_ring 16-byte aligned; kRingItems a power of two; all lanes of the warp.
template <class T, uint32_t kRingItems>
__device__ void MoveFromRing(const T* s_ring, uint32_t begin, uint32_t count, T* out) {
  constexpr uint32_t kWordItems = 16 / sizeof(T);
  constexpr uint32_t kRingWords = kRingItems / kWordItems;
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(out) / sizeof(T) % kWordItems);
  const uint32_t head = min((kWordItems - misaligned) % kWordItems, count);
  const uint32_t num_words = (count - head) / kWordItems;
  const uint32_t middle = num_words * kWordItems;
  const auto* s_words = reinterpret_cast<const uint4*>(s_ring);
  auto* to = reinterpret_cast<uint4*>(out + head);
  // Where the first stored word begins within its aligned word of the ring.
  const uint32_t skip = (begin + head) % kWordItems * sizeof(T);
  MoveWordsBehind<sizeof(T), kRingWords>(skip, s_words, (begin + head) / kWordItems, num_words, to);
  if (const uint32_t i = LaneOfWarp(); i < count - middle) {
    const uint32_t rank = i < head ? i : middle + i;
    out[rank] = s_ring[(begin + rank) % kRingItems];
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_MOVE_CUH_
