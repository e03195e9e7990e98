// Tells which items a compact keeps, one at a time, and how many bytes the compact moves.
#ifndef PREFIXD_KERNELS_CPU_SELECTOR_H_
#define PREFIXD_KERNELS_CPU_SELECTOR_H_

#include <cmath>
#include <cstdint>

#include "kernels/cpu/operators.h"
#include "kernels/device.h"

namespace prefixd::cpu {

// Calls f with a functor bool(uint64_t item) that says whether args.selector holds for an item, before inversion.
template <class F>
void VisitSelector(const CompactArgs& args, F&& f) {
  if (args.selector == Selector::kByteMask) {
    return f([mask = static_cast<const uint8_t*>(args.mask)](uint64_t i) { return mask[i] != 0; });
  }
  if (args.selector == Selector::kBitMask) {
    return f(
        [mask = static_cast<const uint8_t*>(args.mask)](uint64_t i) { return ((mask[i / 8] >> (i % 8)) & 1) != 0; });
  }
  if (args.selector != Selector::kPredicate) FatalValue("VisitSelector", args.selector);
  VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* in = static_cast<const T*>(args.in);
    const auto value = static_cast<Accumulator<T>>(args.value.As<T>());
    const auto end = static_cast<Accumulator<T>>(args.end.As<T>());
    switch (args.comparison) {
      case Comparison::kLess:
        return f([=](uint64_t i) { return in[i] < value; });
      case Comparison::kLessEqual:
        return f([=](uint64_t i) { return in[i] <= value; });
      case Comparison::kGreater:
        return f([=](uint64_t i) { return in[i] > value; });
      case Comparison::kGreaterEqual:
        return f([=](uint64_t i) { return in[i] >= value; });
      case Comparison::kEqual:
        return f([=](uint64_t i) { return in[i] == value; });
      case Comparison::kNotEqual:
        return f([=](uint64_t i) { return in[i] != value; });
      case Comparison::kIsNan:
        return f([=](uint64_t i) { return IsNan(static_cast<Accumulator<T>>(in[i])); });
      case Comparison::kIsFinite:
        return f([=](uint64_t i) {
          if constexpr (kIsFloating<T>) return std::isfinite(static_cast<Accumulator<T>>(in[i]));
          return true;
        });
      case Comparison::kInRange:
        return f([=](uint64_t i) { return value <= in[i] && in[i] < end; });
    }
    FatalValue("VisitSelector", args.comparison);
  });
}

// Bytes read and written where `count` elements are kept.
inline uint64_t NumBytes(const CompactArgs& args, uint64_t count) {
  uint64_t num_bytes = 0;
  if (args.selector == Selector::kByteMask) num_bytes += args.num_items;
  if (args.selector == Selector::kBitMask) num_bytes += (args.num_items + 7) / 8;
  if (args.selector == Selector::kPredicate || args.values != nullptr) num_bytes += args.num_items * SizeOf(args.dtype);
  if (args.values != nullptr) num_bytes += count * SizeOf(args.dtype);
  if (args.indices != nullptr) num_bytes += count * SizeOf(args.index_dtype);
  return num_bytes;
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_SELECTOR_H_
