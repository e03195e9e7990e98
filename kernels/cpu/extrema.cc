#include "kernels/cpu/extrema.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/cpu/simd/kernels.h"

namespace prefixd::cpu {
namespace {

template <class T, class Index>
class Marks {
 public:
  explicit Marks(const MarkArgs& args)
      : args_(args),
        in_(static_cast<const T*>(args.in)),
        extrema_(static_cast<const T*>(args.extrema)),
        marks_(static_cast<Index*>(args.marks)) {}

  void Run() const {
    const uint64_t num_items = args_.NumItems();
    ForParts(NumParts(num_items, kPartItems), [&](uint64_t part) {
      const uint64_t first = part * kPartItems;
      MarkItems(first, first + PartItems(num_items, kPartItems, part));
    });
    // Their first items have others in front of them, so that they were not taken for first ones. Equals are marked.
    if (args_.offsets == nullptr || args_.marks_equals) return;
    ForParts(NumParts(args_.num_arrays, kPartItems), [&](uint64_t part) {
      const uint64_t first = part * kPartItems;
      MarkFirstOfSegments(first, first + PartItems(args_.num_arrays, kPartItems, part));
    });
  }

 private:
  static constexpr uint64_t kPartItems = kPartBytes / sizeof(uint64_t);

  bool IsInterleaved() const { return args_.num_arrays > 1 && args_.order == BatchOrder::kInterleaved; }

  // Marks the items from `item` to `end` of all arrays, in pieces whose indices are one behind the other, or all one.
  void MarkItems(uint64_t item, uint64_t end) const {
    const uint64_t length = IsInterleaved() ? args_.num_arrays : args_.num_items;
    while (item < end) {
      const uint64_t piece_end = std::min(end, item - item % length + length);
      IsInterleaved() ? MarkPiece<0>(item, piece_end, item / length) : MarkPiece<1>(item, piece_end, item % length);
      item = piece_end;
    }
  }

  // kStep: what the index grows by from one item to the next.
  template <int kStep>
  void MarkPiece(uint64_t begin, uint64_t end, uint64_t index) const {
    const Index none = args_.reverse ? std::numeric_limits<Index>::max() : 0;
    const auto index_of = [&](uint64_t item) {
      return static_cast<Index>(args_.first_item + index + (item - begin) * kStep);
    };
    if (args_.marks_equals) {
      for (uint64_t i = begin; i < end; ++i) marks_[i] = AreSame(in_[i], extrema_[i]) ? index_of(i) : none;
      return;
    }
    // The first item of an array has none before it.
    const uint64_t last_index = args_.num_items - 1;
    if (kStep == 0 && index == (args_.reverse ? last_index : 0)) {
      std::fill(marks_ + begin, marks_ + end, index_of(begin));
      return;
    }
    const uint64_t distance = (kStep == 0 ? args_.num_arrays : 1) * (args_.reverse ? 1 : -1);  // Modulo 2^64.
    uint64_t first = begin, last = end;
    if (kStep == 1 && !args_.reverse && index == 0) {
      MarkFirst(first, index_of(first), none);
      ++first;
    }
    if (kStep == 1 && args_.reverse && index + (end - begin) - 1 == last_index) {
      --last;
      MarkFirst(last, index_of(last), none);
    }
    for (uint64_t i = first; i < last; ++i) {
      marks_[i] = AreSame(extrema_[i + distance], extrema_[i]) ? none : index_of(i);
    }
  }

  void MarkFirst(uint64_t item, Index index, Index none) const {
    const bool goes_on = args_.before != nullptr &&
                         AreSame(static_cast<T>(args_.before->value.template As<Accumulator<T>>()), extrema_[item]);
    marks_[item] = goes_on ? none : index;
  }

  void MarkFirstOfSegments(uint64_t first, uint64_t end) const {
    for (uint64_t segment = first; segment < end; ++segment) {
      const uint64_t begin = args_.offsets[segment], behind = args_.offsets[segment + 1];
      if (begin == behind) continue;
      const uint64_t item = args_.reverse ? behind - 1 : begin;
      marks_[item] = static_cast<Index>(args_.first_item + item);
    }
  }

  const MarkArgs& args_;
  const T* in_;
  const T* extrema_;
  Index* marks_;
};

template <class F>
void VisitIndex(DType index_dtype, F&& f) {
  index_dtype == DType::kU32 ? f(TypeTag<uint32_t>()) : f(TypeTag<uint64_t>());
}

}  // namespace

Work MarkExtrema(const MarkArgs& args) {
  if (args.NumItems() == 0) return {};
  VisitDType(args.dtype, [&](auto type) {
    VisitIndex(args.index_dtype,
               [&](auto index) { Marks<typename decltype(type)::type, typename decltype(index)::type>(args).Run(); });
  });
  return {.launches = 1, .num_bytes = NumBytes(args)};
}

ExtremumCarry CarryOf(const ScanArgs& args) {
  const uint64_t last = args.reverse ? 0 : args.num_items - 1;
  ExtremumCarry carry;
  VisitDType(args.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    carry.value = Value::Of(static_cast<Accumulator<T>>(static_cast<const T*>(args.out)[last]));
  });
  VisitIndex(args.index_dtype, [&](auto index) {
    using Index = typename decltype(index)::type;
    carry.index = static_cast<const Index*>(args.indices)[last];
  });
  return carry;
}

}  // namespace prefixd::cpu
