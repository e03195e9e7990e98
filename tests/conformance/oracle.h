// What every device must answer: one plain sequential loop for each primitive, written from the contract alone
// (kernels/device.h, proto/prefixd/v1/types.proto). It shares no code with any implementation.
//
// Where the order of a floating-point sum or product is not part of the contract, the answer is the value in long
// double and how far from it a device may be: n * epsilon * (sum of magnitudes), or of the product's magnitude.
// Everything else has a tolerance of 0: the bits must be equal.
#ifndef PREFIXD_TESTS_CONFORMANCE_ORACLE_H_
#define PREFIXD_TESTS_CONFORMANCE_ORACLE_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/device.h"
#include "kernels/types.h"

namespace prefixd::conformance {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
bool SameBits(T a, T b) {
  return std::bit_cast<BitsOf<T>>(a) == std::bit_cast<BitsOf<T>>(b);
}

template <class T>
T CanonicalNan() {
  constexpr uint64_t kBits = sizeof(T) == 8 ? 0x7ff8000000000000 : 0x7fc00000;
  return std::bit_cast<T>(static_cast<BitsOf<T>>(kBits));
}

template <class T>
struct Expected {
  T value{};
  long double exact = 0;      // Used where tolerance is not 0.
  long double tolerance = 0;  // 0: the bits of `value`.

  bool Admits(T got) const {
    if (SameBits(got, value)) return true;
    return tolerance > 0 && std::isfinite(static_cast<long double>(got)) &&
           std::fabs(static_cast<long double>(got) - exact) <= tolerance;
  }
};

// Whether a is the strictly better MIN (or MAX): NaN before everything, then by value, -0 below +0.
template <class T>
bool IsBetter(Op op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(b)) return false;
    if (std::isnan(a)) return true;
    if (a == b) return op == Op::kMin ? std::signbit(a) && !std::signbit(b) : !std::signbit(a) && std::signbit(b);
  }
  return op == Op::kMin ? a < b : a > b;
}

// a op b in the type itself.
template <class T>
T Apply(Op op, T a, T b) {
  if (op == Op::kMin || op == Op::kMax) return IsBetter(op, b, a) ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    return op == Op::kSum ? a + b : a * b;
  } else {
    // The low bits of these do not depend on the bits above them: 64 will do for every width.
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    switch (op) {
      case Op::kSum:
        return static_cast<T>(x + y);
      case Op::kProd:
        return static_cast<T>(x * y);
      case Op::kAnd:
        return static_cast<T>(x & y);
      case Op::kOr:
        return static_cast<T>(x | y);
      default:
        return static_cast<T>(x ^ y);
    }
  }
}

// start op x0 op x1 ..., one element after the other.
template <class T>
class Fold {
 public:
  // exact: every partial result of every order is representable, so that the bits are known.
  Fold(Op op, T start, bool exact)
      : op_(op),
        in_type_(exact || std::is_integral_v<T> || op == Op::kMin || op == Op::kMax),
        value_(start),
        wide_(start),
        magnitudes_(FiniteMagnitude(start)) {}

  void Add(T x) {
    if (in_type_) {
      value_ = Apply(op_, value_, x);
      return;
    }
    ++num_operands_;
    magnitudes_ += FiniteMagnitude(x);
    wide_ = op_ == Op::kSum ? wide_ + x : wide_ * x;
  }

  Expected<T> Get() const {
    if constexpr (std::is_floating_point_v<T>) {
      if (in_type_) return {.value = std::isnan(value_) ? CanonicalNan<T>() : value_};
      if (std::isnan(wide_)) return {.value = CanonicalNan<T>()};
      const auto rounded = static_cast<T>(wide_);
      if (std::isinf(wide_)) return {.value = rounded};
      return {.value = rounded,
              .exact = wide_,
              .tolerance = num_operands_ * std::numeric_limits<T>::epsilon() *
                           (op_ == Op::kSum ? magnitudes_ : std::fabs(wide_))};
    } else {
      return {.value = value_};
    }
  }

 private:
  static long double FiniteMagnitude(T x) {
    const auto magnitude = std::fabs(static_cast<long double>(x));
    return std::isfinite(magnitude) ? magnitude : 0;
  }

  Op op_;
  bool in_type_;
  T value_;
  long double wide_;
  long double magnitudes_;
  long double num_operands_ = 1;
};

// The scan of `in`, and behind it carry_out: num_items + 1 answers.
template <class T>
std::vector<Expected<T>> Scan(Op op, ScanKind kind, bool reverse, const std::vector<T>& in, T start, bool exact) {
  std::vector<Expected<T>> out(in.size() + 1);
  Fold<T> fold(op, start, exact);
  for (size_t step = 0; step < in.size(); ++step) {
    const size_t i = reverse ? in.size() - 1 - step : step;
    if (kind == ScanKind::kExclusive) out[i] = fold.Get();
    fold.Add(in[i]);
    if (kind == ScanKind::kInclusive) out[i] = fold.Get();
  }
  out.back() = fold.Get();
  return out;
}

template <class T>
struct ExpectedState {
  Expected<T> value;
  uint64_t position;
};

template <class T>
ExpectedState<T> Reduce(Op op, const std::vector<T>& in, uint64_t first_item, T start, uint64_t start_position,
                        bool exact) {
  if (op != Op::kMin && op != Op::kMax) {
    Fold<T> fold(op, start, exact);
    for (const T x : in) fold.Add(x);
    return {fold.Get(), start_position};
  }
  T best = start;
  uint64_t position = start_position;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint64_t here = first_item + i + 1;
    if (IsBetter(op, in[i], best)) {
      best = in[i];
      position = here;
    } else if (!IsBetter(op, best, in[i]) && here < position) {
      position = here;
    }
  }
  return {Fold<T>(op, best, true).Get(), position};
}

template <class T>
bool Holds(Comparison comparison, T x, T value) {
  switch (comparison) {
    case Comparison::kLess:
      return x < value;
    case Comparison::kLessEqual:
      return x <= value;
    case Comparison::kGreater:
      return x > value;
    case Comparison::kGreaterEqual:
      return x >= value;
    case Comparison::kEqual:
      return x == value;
    case Comparison::kNotEqual:
      return !(x == value);
    case Comparison::kIsNan:
      if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
      return false;
    case Comparison::kIsFinite:
      if constexpr (std::is_floating_point_v<T>) return !std::isnan(x) && !std::isinf(x);
      return true;
  }
  return false;
}

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_ORACLE_H_
