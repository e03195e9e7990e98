// Which items of a lane's run the ring compact (ring_compact.cuh) selects.
#ifndef PREFIXD_KERNELS_CUDA_RING_COMPACT_SELECT_CUH_
#define PREFIXD_KERNELS_CUDA_RING_COMPACT_SELECT_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/ring_compact_narrow.cuh"
#include "kernels/cuda/select.cuh"
#include "kernels/device.h"

namespace prefixd::cuda {

// Runs of four items.
template <class T, Selector kSelector>
class RunSelection {
 public:
  // mask_offset: how many bytes, or bits, of a stage's mask stand before its first item's.
  __device__ RunSelection(const CompactParams<T>& p, uint32_t mask_offset) : p_(p), mask_offset_(mask_offset) {}

  // Bit i: item first_item + i of a whole stage is selected.
  __device__ uint32_t Selected(const T* s_items, const uint8_t* s_mask, int first_item) const {
    uint32_t selected = 0;
    if constexpr (kSelector == Selector::kByteMask) {
      const auto* s_words = reinterpret_cast<const uint32_t*>(s_mask) + (mask_offset_ + first_item) / 4;
      const uint32_t bytes = __funnelshift_r(s_words[0], s_words[1], 8 * (mask_offset_ % 4));
      selected = __dp4a(__vcmpne4(bytes, 0) & 0x08040201u, 0x01010101u, 0u);
    } else if constexpr (kSelector == Selector::kBitMask) {
      const uint32_t bit = mask_offset_ + first_item;
      const uint32_t bytes = s_mask[bit / 8] | s_mask[(bit + 3) / 8] << 8;
      selected = bytes >> bit % 8 & 0xf;
    } else {
      T items[4];
      LoadRun(s_items + first_item, items);
#pragma unroll
      for (int i = 0; i < 4; ++i) selected |= Contains(p_.kept, items[i]) ? 1u << i : 0;
    }
    return selected;
  }

  // For a stage that is not whole, which begins with slot `begin`: loads those of the lane's items that exist, if they
  // are needed; the others may be anything. Bit i: item first_item + i exists, and is kept.
  __device__ uint32_t LoadAndKeep(T* s_items, uint64_t begin, int first_item, bool needs_items) const {
    uint32_t kept = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint64_t slot = begin + first_item + i;
      if (slot < p_.skipped || slot >= p_.num_items) continue;
      if (needs_items) s_items[first_item + i] = p_.in[slot];
      if (IsSelected<T, kSelector>(p_, s_items[first_item + i], slot - p_.skipped) != p_.invert) kept |= 1u << i;
    }
    return kept;
  }

 private:
  const CompactParams<T>& p_;
  const uint32_t mask_offset_;
};

// The same for narrow runs (ring_compact_narrow.cuh).
template <class T, Selector kSelector>
class NarrowSelection {
 public:
  __device__ NarrowSelection(const CompactParams<T>& p, uint32_t mask_offset)
      : p_(p), interval_(p.kept.low, p.kept.high), mask_offset_(mask_offset) {}

  __device__ uint32_t Selected(const T* s_items, const uint8_t* s_mask, int first_item) const {
    if constexpr (kSelector == Selector::kByteMask) {
      constexpr int kWords = kRunItems / 4;
      uint32_t flags[kWords];
      LoadMask(s_mask, first_item, flags);
#pragma unroll
      for (int w = 0; w < kWords; ++w) flags[w] = FlagNonZero(flags[w]);
      return BitsOfFlags<1>(flags);
    } else if constexpr (kSelector == Selector::kBitMask) {
      using Bits = std::conditional_t<kRunItems == 16, uint16_t, uint8_t>;
      const auto* s_bits = reinterpret_cast<const Bits*>(s_mask) + (mask_offset_ + first_item) / kRunItems;
      const uint32_t bits = s_bits[0] | static_cast<uint32_t>(s_bits[1]) << kRunItems;
      return static_cast<Bits>(bits >> mask_offset_ % kRunItems);
    } else {
      uint32_t flags[4];
      LoadRun(reinterpret_cast<const uint32_t*>(s_items + first_item), flags);
#pragma unroll
      for (int w = 0; w < 4; ++w) flags[w] = interval_.Flag(flags[w]);
      return BitsOfFlags<sizeof(T)>(flags);
    }
  }

  // The same. Loads some other item in place of one that does not exist: so no load waits for a branch.
  __device__ uint32_t LoadAndKeep(T* s_items, uint64_t begin, int first_item, bool needs_items) const {
    constexpr int kGroup = kSelector == Selector::kPredicate ? 8 : 4;  // Eight loads at a time, masks included.
    // From here on places count from `begin`. All are small, except that of the array's last item.
    const int first = static_cast<int>(begin < p_.skipped ? p_.skipped - begin : 0);
    const int last = static_cast<int>(min(static_cast<int64_t>(p_.num_items - begin), int64_t{1} << 30)) - 1;
    uint32_t kept = 0;
#pragma unroll 1
    for (int group = 0; group < kRunItems; group += kGroup) {
      T items[kGroup];
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const int place = first_item + group + i;
        const int loaded = min(max(place, first), last);
        items[i] = needs_items ? p_.in[begin + loaded] : T();
        const bool is_kept = IsSelected<T, kSelector>(p_, items[i], begin + loaded - p_.skipped) != p_.invert;
        kept |= place == loaded && is_kept ? 1u << i << group : 0;
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i) s_items[first_item + group + i] = items[i];
    }
    return kept;
  }

 private:
  static constexpr int kRunItems = kRunBytes / sizeof(T);

  // The run's bytes of the mask.
  template <int kWords>
  __device__ void LoadMask(const uint8_t* s_mask, int first_item, uint32_t (&words)[kWords]) const {
    const auto* s_words = reinterpret_cast<const uint32_t*>(s_mask) + (mask_offset_ + first_item) / 4;
    if (mask_offset_ % kRunItems == 0) {
      const auto run = *reinterpret_cast<const Vector<uint32_t, kWords>*>(s_words);
#pragma unroll
      for (int w = 0; w < kWords; ++w) words[w] = run.items[w];
    } else {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        words[w] = __funnelshift_r(s_words[w], s_words[w + 1], 8 * (mask_offset_ % 4));
      }
    }
  }

  const CompactParams<T>& p_;
  const WordInterval<T> interval_;
  const uint32_t mask_offset_;
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_RING_COMPACT_SELECT_CUH_
