// Compact, strategy "cub": cub::DeviceSelect. Values alone come from If, Flagged and FlaggedIf. With indices, and by
// bit masks, If selects from the indices, and each kept index fetches its element. Two launches.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_COMPACT_CUH_
#define PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_COMPACT_CUH_

#include <thrust/iterator/counting_iterator.h>

#include <cstddef>
#include <cstdint>
#include <cub/device/device_select.cuh>
#include <limits>

#include "kernels/cuda/select.cuh"
#include "kernels/yardsticks/cub/cub.h"
#include "kernels/yardsticks/cub/cub_parts.cuh"

namespace prefixd::cuda {

// With a mask elements are only moved, so all types of one size share a kernel.
template <class T>
using BytesOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <class T>
struct KeepsElement {
  Interval<T> kept;
  bool invert;

  __device__ bool operator()(T element) const { return Contains(kept, element) != invert; }
};

struct KeepsUnset {
  __device__ bool operator()(uint8_t flag) const { return flag == 0; }
};

template <class T, Selector kSelector>
struct KeepsIndex {
  CompactParams<T> p;

  __device__ bool operator()(uint64_t item) const {
    T element = {};
    if constexpr (kSelector == Selector::kPredicate) element = p.in[item];
    return IsSelected<T, kSelector>(p, element, item) != p.invert;
  }
};

// An output iterator for kept indices: it writes item `position` of the outputs.
template <class T>
class KeptIterator {
 public:
  class Element {
   public:
    __device__ Element(const CompactParams<T>& p, uint64_t position) : p_(p), position_(position) {}
    __device__ void operator=(uint64_t item) const {
      if (p_.values != nullptr) p_.values[position_] = p_.in[item];
      if (p_.indices_u32 != nullptr) p_.indices_u32[position_] = static_cast<uint32_t>(p_.first_item + item);
      if (p_.indices_u64 != nullptr) p_.indices_u64[position_] = p_.first_item + item;
    }

   private:
    const CompactParams<T>& p_;
    uint64_t position_;
  };
  using iterator_category = std::random_access_iterator_tag;
  using value_type = uint64_t;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Element;

  __host__ __device__ explicit KeptIterator(const CompactParams<T>& p, uint64_t position = 0)
      : p_(p), position_(position) {}
  __host__ __device__ KeptIterator operator+(difference_type n) const { return KeptIterator(p_, position_ + n); }
  __device__ reference operator*() const { return Element(p_, position_); }
  __device__ reference operator[](difference_type n) const { return Element(p_, position_ + n); }

 private:
  CompactParams<T> p_;
  uint64_t position_;
};

struct KeepCount {
  uint64_t* count;
  uint64_t* h_num_kept;

  template <class Count>
  __device__ void operator()(Count num_kept) const {
    *count = static_cast<uint64_t>(num_kept);
    *h_num_kept = static_cast<uint64_t>(num_kept);
  }
};

template <class T, Selector kSelector>
cudaError_t LaunchCubCompactBy(const CompactParams<T>& p, LaunchContext* context) {
  const Sink d_count{KeepCount{p.count, p.h_num_kept}};
  const auto num_items = static_cast<int64_t>(p.num_items);
  const bool values_alone = p.values != nullptr && p.indices_u32 == nullptr && p.indices_u64 == nullptr;
  return RunCub(context, [&](void* d_temp, size_t& temp_bytes) {
    using cub::DeviceSelect;
    if constexpr (kSelector == Selector::kPredicate) {
      if (values_alone) {
        return DeviceSelect::If(d_temp, temp_bytes, p.in, p.values, d_count, num_items,
                                KeepsElement<T>{p.kept, p.invert}, context->stream);
      }
    }
    if constexpr (kSelector == Selector::kByteMask) {
      if (values_alone && p.invert) {
        return DeviceSelect::FlaggedIf(d_temp, temp_bytes, p.in, p.mask, p.values, d_count, num_items, KeepsUnset{},
                                       context->stream);
      }
      if (values_alone) {
        return DeviceSelect::Flagged(d_temp, temp_bytes, p.in, p.mask, p.values, d_count, num_items, context->stream);
      }
    }
    return DeviceSelect::If(d_temp, temp_bytes, thrust::counting_iterator<uint64_t>(0), KeptIterator<T>(p), d_count,
                            num_items, KeepsIndex<T, kSelector>{p}, context->stream);
  });
}

template <class T>
cudaError_t LaunchCubCompact(const CompactArgs& args, uint64_t* h_num_kept, LaunchContext* context,
                             uint64_t* num_launches) {
  // CUB cuts arrays that are longer than an int. Each part takes one kernel for its tile states and one for its work.
  constexpr uint64_t kPartItems = std::numeric_limits<int>::max();
  *num_launches = args.num_items == 0 ? 1 : 2 * ((args.num_items + kPartItems - 1) / kPartItems);
  using Bytes = BytesOf<T>;
  switch (args.selector) {
    case Selector::kPredicate:
      return LaunchCubCompactBy<T, Selector::kPredicate>(MakeCompactParams<T>(args, h_num_kept), context);
    case Selector::kByteMask:
      return LaunchCubCompactBy<Bytes, Selector::kByteMask>(MakeCompactParams<Bytes>(args, h_num_kept), context);
    case Selector::kBitMask:
      return LaunchCubCompactBy<Bytes, Selector::kBitMask>(MakeCompactParams<Bytes>(args, h_num_kept), context);
  }
  FatalValue("LaunchCubCompact", args.selector);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_YARDSTICKS_CUB_CUB_COMPACT_CUH_
