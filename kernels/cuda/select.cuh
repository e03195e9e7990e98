// The common parts of the compact kernels: their parameters, and the rule for which elements are kept.
#ifndef PREFIXD_KERNELS_CUDA_SELECT_CUH_
#define PREFIXD_KERNELS_CUDA_SELECT_CUH_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/look_back.cuh"
#include "kernels/device.h"
#include "kernels/interval.h"

namespace prefixd::cuda {

// f16 and bf16 are compared as f32.
template <class T>
__device__ bool Contains(const Interval<T>& interval, std::type_identity_t<T> element) {
  return (interval.low <= element) & (element <= interval.high);
}

template <class T>
struct CompactParams {
  const T* in;
  const uint8_t* mask;
  uint64_t mask_bytes;  // The bytes of one array's mask.
  Interval<Accumulator<T>> kept;
  bool invert;  // Keep what is not selected. With a predicate, kept.outside is already part of it.
  uint64_t num_items;
  uint64_t
      skipped;  // So many items that `in`, num_items and first_item count do not exist: the first ones, without masks.
  uint32_t num_tiles;
  uint64_t first_item;
  T* values;
  uint32_t* indices_u32;  // At most one of the two is not null.
  uint64_t* indices_u64;
  uint64_t* count;
  uint64_t* h_num_kept;
  TileStates states;
};

template <class T>
CompactParams<T> MakeCompactParams(const CompactArgs& args, uint64_t* h_num_kept) {
  const bool is_u32 = args.index_dtype == DType::kU32;
  const Interval<Accumulator<T>> kept = IntervalOf<T>(args.comparison, args.value, args.end);
  return {.in = static_cast<const T*>(args.in),
          .mask = static_cast<const uint8_t*>(args.mask),
          .mask_bytes = MaskBytes(args),
          .kept = kept,
          .invert = args.invert != (args.selector == Selector::kPredicate && kept.outside),
          .num_items = args.num_items,
          .skipped = 0,
          .num_tiles = 0,
          .first_item = args.first_item,
          .values = static_cast<T*>(args.values),
          .indices_u32 = is_u32 ? static_cast<uint32_t*>(args.indices) : nullptr,
          .indices_u64 = is_u32 ? nullptr : static_cast<uint64_t*>(args.indices),
          .count = args.count,
          .h_num_kept = h_num_kept,
          .states = {}};
}

// One of several arrays that follow each other. Each has its own count.
template <class T>
__device__ CompactParams<T> ArrayOf(CompactParams<T> p, uint64_t array) {
  const uint64_t first = array * p.num_items;
  if (p.in != nullptr) p.in += first;
  if (p.mask != nullptr) p.mask += array * p.mask_bytes;
  if (p.values != nullptr) p.values += first;
  if (p.indices_u32 != nullptr) p.indices_u32 += first;
  if (p.indices_u64 != nullptr) p.indices_u64 += first;
  p.count += array;
  return p;
}

template <class T, Selector kSelector>
__device__ bool IsSelected(const CompactParams<T>& p, T element, uint64_t item) {
  if constexpr (kSelector == Selector::kPredicate) return Contains(p.kept, element);
  if constexpr (kSelector == Selector::kByteMask) return p.mask[item] != 0;
  if constexpr (kSelector == Selector::kBitMask) return (p.mask[item / 8] >> (item % 8) & 1) != 0;
}

// Tiles count in 32 bits, arrays in 64.
struct CountSum {
  using Item = uint32_t;
  static constexpr bool kAnyOrder = true;

#if __CUDA_ARCH__ >= 800
  static __device__ Item ReduceWarp(Item item) { return __reduce_add_sync(kAllLanes, item); }
#endif

  template <class Count>
  static __device__ Count Combine(Count left, Item right) {
    return left + right;
  }
};

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_SELECT_CUH_
