// Comparisons with a value as intervals, so that one loop does for all of them.
#ifndef PREFIXD_KERNELS_INTERVAL_H_
#define PREFIXD_KERNELS_INTERVAL_H_

#include <cmath>
#include <limits>

#include "kernels/types.h"

namespace prefixd {

// A comparison holds inside or outside an interval, which takes two instructions an element. A NaN is in no interval.
template <class T>
struct Interval {
  // Nothing but a NaN is outside of these.
  static constexpr T kLowest =
      std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  static constexpr T kHighest =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

  T low;
  T high;
  bool outside;  // The comparison holds outside the interval.
};

namespace internal {

template <class T>
Interval<T> MakeInterval(Comparison comparison, T value, T end) {
  using Limits = std::numeric_limits<T>;
  constexpr T kLowest = Interval<T>::kLowest, kHighest = Interval<T>::kHighest;
  constexpr Interval<T> kEmpty = {kHighest, kLowest, false};
  const auto below = [](T v) {
    if constexpr (kIsFloating<T>) return std::nextafter(v, kLowest);
    return static_cast<T>(v - 1);
  };
  const auto above = [](T v) {
    if constexpr (kIsFloating<T>) return std::nextafter(v, kHighest);
    return static_cast<T>(v + 1);
  };
  if (comparison == Comparison::kInRange) {
    if (value != value || end != end || end == kLowest) return kEmpty;
    return {value, below(end), false};
  }
  if (value != value) {
    return {kEmpty.low, kEmpty.high, comparison == Comparison::kNotEqual || comparison == Comparison::kIsNan};
  }
  switch (comparison) {
    case Comparison::kLess:
      return value == kLowest ? kEmpty : Interval<T>{kLowest, below(value), false};
    case Comparison::kLessEqual:
      return {kLowest, value, false};
    case Comparison::kGreater:
      return value == kHighest ? kEmpty : Interval<T>{above(value), kHighest, false};
    case Comparison::kGreaterEqual:
      return {value, kHighest, false};
    case Comparison::kEqual:
      return {value, value, false};
    case Comparison::kNotEqual:
      return {value, value, true};
    case Comparison::kIsNan:
      return {kLowest, kHighest, true};
    case Comparison::kIsFinite:
      return {Limits::lowest(), Limits::max(), false};
    case Comparison::kInRange:  // Made above.
      break;
  }
  FatalValue("MakeInterval", comparison);
}

}  // namespace internal

// The elements for which the comparison with the values that it takes holds. f16 and bf16 are compared as f32.
template <class T>
Interval<Accumulator<T>> IntervalOf(Comparison comparison, Value value, Value end) {
  const auto number = [](bool is_taken, Value from) {
    return is_taken ? static_cast<Accumulator<T>>(from.As<T>()) : Accumulator<T>{};
  };
  return internal::MakeInterval(comparison, number(HasValue(comparison), value), number(HasEnd(comparison), end));
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_INTERVAL_H_
