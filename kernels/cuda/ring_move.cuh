// How items move into a ring in shared memory, and how a warp moves them, or their indices, from there to any place:
// all but the ends by aligned stores of 16 bytes. The words at both ends may have bytes of other items, which are not
// used: racecheck reports that they are being written.
#ifndef PREFIXD_KERNELS_CUDA_RING_MOVE_CUH_
#define PREFIXD_KERNELS_CUDA_RING_MOVE_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/async_copy.cuh"
#include "kernels/cuda/warp_join.cuh"

namespace prefixd::cuda {

// Stores the item if that is wanted, without a branch.
inline __device__ void StoreSharedIf(uint32_t wanted, SharedAddress to, uint16_t item) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u16 [%0], %1;}" ::"r"(to), "h"(item), "r"(wanted)
               : "memory");
}
inline __device__ void StoreSharedIf(uint32_t wanted, SharedAddress to, uint32_t item) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u32 [%0], %1;}" ::"r"(to), "r"(item), "r"(wanted)
               : "memory");
}
inline __device__ void StoreSharedIf(uint32_t wanted, SharedAddress to, uint64_t item) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u64 [%0], %1;}" ::"r"(to), "l"(item), "r"(wanted)
               : "memory");
}

// Copies what the lane stored behind the ring, up to `end`, to where the ring begins.
template <uint32_t kRingItems, class T>
__device__ void CopyFromBehind(uint32_t end, T* s_ring) {
  constexpr uint32_t kRingBytes = kRingItems * sizeof(T);
  auto* s_bytes = reinterpret_cast<unsigned char*>(s_ring);
#pragma unroll 1
  for (uint32_t at = kRingBytes; at < end * sizeof(T); ++at) s_bytes[at - kRingBytes] = s_bytes[at];
}

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

// first_index + place, for the places of a word of indices. low, high: the places of two words that follow each other,
// of which the first `skip` are left out.
inline __device__ uint4 IndicesOf(uint2 low, uint2 high, uint32_t skip, uint32_t first_index) {
  const bool skips_two = skip >= 2;
  const uint32_t units[3] = {skips_two ? low.y : low.x, skips_two ? high.x : low.y, skips_two ? high.y : high.x};
  const uint32_t bits = skip % 2 * 16;
  const uint32_t first = __funnelshift_r(units[0], units[1], bits);
  const uint32_t second = __funnelshift_r(units[1], units[2], bits);
  return {first_index + (first & 0xffff), first_index + (first >> 16), first_index + (second & 0xffff),
          first_index + (second >> 16)};
}
inline __device__ ulonglong2 IndicesOf(uint32_t low, uint32_t high, uint32_t skip, uint64_t first_index) {
  const uint32_t places = __funnelshift_r(low, high, skip * 16);
  return {first_index + (places & 0xffff), first_index + (places >> 16)};
}

// Stores first_index + place for the `count` places from `begin` on of a ring of kRingItems.
// Needs: s_places 16-byte aligned; kRingItems a power of two; all lanes of the warp.
template <uint32_t kRingItems, class Index>
__device__ void MoveIndicesFromRing(const uint16_t* s_places, uint32_t begin, uint32_t count, Index first_index,
                                    Index* out) {
  constexpr uint32_t kWordItems = 16 / sizeof(Index);
  constexpr uint32_t kRingWords = kRingItems / kWordItems;
  constexpr int kUnroll = 4;
  using Places = std::conditional_t<kWordItems == 4, uint2, uint32_t>;
  using Word = decltype(IndicesOf(Places(), Places(), 0, Index()));
  const uint32_t misaligned = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(out) / sizeof(Index) % kWordItems);
  const uint32_t head = min((kWordItems - misaligned) % kWordItems, count);
  const uint32_t num_words = (count - head) / kWordItems;
  const uint32_t middle = num_words * kWordItems;
  const auto* s_words = reinterpret_cast<const Places*>(s_places);
  auto* to = reinterpret_cast<Word*>(out + head);
  const uint32_t first = (begin + head) / kWordItems;
  const uint32_t skip = (begin + head) % kWordItems;
  for (uint32_t base = 0; base < num_words; base += kUnroll * kWarpThreads) {
    Word words[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const uint32_t i = first + min(base + k * kWarpThreads + LaneOfWarp(), num_words - 1);
      words[k] = IndicesOf(s_words[i % kRingWords], s_words[(i + 1) % kRingWords], skip, first_index);
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const uint32_t i = base + k * kWarpThreads + LaneOfWarp();
      if (i < num_words) to[i] = words[k];
      __syncwarp();  // As in MoveWordsFromRing.
    }
  }
  if (const uint32_t i = LaneOfWarp(); i < count - middle) {
    const uint32_t rank = i < head ? i : middle + i;
    out[rank] = first_index + s_places[(begin + rank) % kRingItems];
  }
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_MOVE_CUH_
