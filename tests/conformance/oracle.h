// What every device must answer: one plain sequential loop for each primitive, written from the contract alone
// (kernels/device.h, proto/prefixd/v1/types.proto). It shares no code with any implementation.
//
// Floating-point sums and products that round, and log_add_exp, are combined in the order of kernels/NUMERICS.md
// (association.h). That value must come near the one in long double: within n * epsilon * (sum of magnitudes, or the
// product's magnitude). Sequential and naive give the left fold, bit for bit. An algorithm with an order of its own
// must come near the value in long double. Its sum may be off by (64 + n / 1024) * epsilon * (sum of magnitudes). An
// addition is off by half an epsilon, so an element may pass 128 + n / 512 of them: a few dozen in its tile of at least
// 512 elements, and one for each tile, joined one after the other. Its product may be off by n * epsilon: every
// multiplication counts.
//
// Elements of f16 and bf16 are combined as floats, and each result is rounded to them: the loops are of the
// accumulator's type, and what they expect becomes an Expected of the output type at the end.
#ifndef PREFIXD_TESTS_CONFORMANCE_ORACLE_H_
#define PREFIXD_TESTS_CONFORMANCE_ORACLE_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "kernels/device.h"
#include "kernels/types.h"
#include "tests/conformance/association.h"
#include "tests/conformance/log_add_exp_reference.h"

namespace prefixd::conformance {

template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// The elements, converted to the output type. Only then are they combined.
template <class Out, class In>
std::vector<Out> Converted(const std::vector<In>& in) {
  return std::vector<Out>(in.begin(), in.end());
}

template <class T>
bool SameBits(T a, T b) {
  return std::bit_cast<BitsOf<T>>(a) == std::bit_cast<BitsOf<T>>(b);
}

template <class T>
T CanonicalNan() {
  constexpr uint64_t kBits = std::is_same_v<T, double>    ? 0x7ff8000000000000
                             : std::is_same_v<T, float>   ? 0x7fc00000
                             : std::is_same_v<T, Float16> ? 0x7e00
                                                          : 0x7fc0;
  return std::bit_cast<T>(static_cast<BitsOf<T>>(kBits));
}

// The T nearest to x, of two that are as near the one that is even.
template <class T>
T Nearest(long double x) {
  if constexpr (!kIsNarrowFloat<T>) {
    return static_cast<T>(x);
  } else {
    using Limits = std::numeric_limits<T>;
    if (x == 0 || !std::isfinite(x)) return static_cast<T>(static_cast<float>(x));
    const int exponent = std::max(std::ilogb(x), std::ilogb(static_cast<float>(Limits::min())));
    const long double unit = std::ldexp(1.0L, exponent - Limits::digits + 1);  // Between neighbours.
    const long double nearest = std::nearbyint(x / unit) * unit;
    if (std::fabs(nearest) > Limits::max()) return x > 0 ? Limits::infinity() : -Limits::infinity();
    return static_cast<T>(static_cast<float>(nearest));  // Both are exact.
  }
}

// Replaces any NaN by the only NaN that leaves a device. Any other value stays as it is.
template <class T>
T Canonical(T v) {
  if constexpr (kIsFloating<T>) return std::isnan(v) ? CanonicalNan<T>() : v;
  return v;
}

template <class T>
struct Expected {
  T value{};
  long double error = 0;  // How far off an algorithm with an order of its own may be.

  bool Admits(T got) const {
    if (SameBits(got, value)) return true;
    if constexpr (!kIsFloating<T>) return false;
    return error > 0 && std::fabs(static_cast<long double>(got) - value) <= error;  // False for a NaN.
  }

  // What is expected where the value is rounded to an output type.
  template <class Out>
  Expected<Out> As() const {
    Expected<Out> rounded{.value = Canonical(static_cast<Out>(value)), .error = error};
    if constexpr (!std::is_same_v<Out, T>) {
      using Limits = std::numeric_limits<Out>;
      // Values that are off by the error may be rounded to neighbours.
      if (error > 0)
        rounded.error += Limits::epsilon() * std::fabs(static_cast<long double>(value)) + Limits::denorm_min();
    }
    return rounded;
  }
};

template <class Out, class T>
std::vector<Expected<Out>> As(const std::vector<Expected<T>>& values) {
  std::vector<Expected<Out>> rounded;
  for (const Expected<T>& value : values) rounded.push_back(value.template As<Out>());
  return rounded;
}

// The order in which an algorithm combines floating-point sums and products. kOurs: that of kernels/NUMERICS.md.
enum class Order { kOurs, kLeftFold, kItsOwn };
inline Order OrderOf(const Algorithm& algorithm) {
  if (algorithm.strategy == Strategy::kSequential || algorithm.strategy == Strategy::kNaive) return Order::kLeftFold;
  return FollowsNumerics(algorithm) ? Order::kOurs : Order::kItsOwn;
}

// Whether a is strictly better than b for MIN (or MAX). A NaN beats every number; else the value decides, -0 below +0.
template <class T>
bool IsBetter(Op op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(b)) return false;
    if (std::isnan(a)) return true;
    if (a == b) return op == Op::kMin ? std::signbit(a) && !std::signbit(b) : !std::signbit(a) && std::signbit(b);
  }
  return op == Op::kMin ? a < b : a > b;
}

// log(e^a + e^b) by the library, in the widest type.
inline long double WideLogAddExp(long double a, long double b) {
  if (a == b && std::isinf(a)) return a;
  return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

// a op b, computed in T, by an operator of elements.
template <class T>
T Apply(Op op, T a, T b) {
  static_assert(!kIsNarrowFloat<T>, "items of f16 and bf16 are combined as floats");
  if (op == Op::kMin || op == Op::kMax) return IsBetter(op, b, a) ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    return op == Op::kSum ? a + b : a * b;
  } else {
    // The low bits of these results do not depend on the bits above them, so 64 bits will do for every width.
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

template <class T>
Accumulated<T> ItemOf(Op op, T x) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::kLogAddExp) return ExponentialOf(x);
  }
  return {x};
}

template <class T>
T ResultOf(Op op, Accumulated<T> item) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::kLogAddExp) return Canonical(LogarithmOf(item));
  }
  return Canonical(item.value);
}

template <class T>
Accumulated<T> Apply(Op op, Accumulated<T> a, Accumulated<T> b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::kLogAddExp) return SumOf(a, b);
  }
  return {Apply(op, a.value, b.value)};
}

// As a carry, or the state of a reduce.
template <class T>
std::vector<T> CarryOf(Op op, Accumulated<T> item) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == Op::kLogAddExp) {
      const Accumulated<T> settled = SettledOf(item);
      return {settled.value, settled.exponent};
    }
  }
  return {Canonical(item.value)};
}

// start op x0 op x1 ..., one element after the other, computed in T, and where that rounds in long double too.
template <class T>
class Fold {
 public:
  Fold(Op op, Accumulated<T> start, bool rounds)
      : op_(op), rounds_(rounds), item_(start), wide_(value()), magnitudes_(FiniteMagnitude(value())) {}

  void Add(T x) {
    item_ = Apply(op_, item_, ItemOf(op_, x));
    if constexpr (std::is_floating_point_v<T>) {
      if (!rounds_ || std::isnan(wide_)) return;  // It stays one. An addition to a NaN takes a hundred times as long.
      ++num_operands_;
      if (op_ == Op::kLogAddExp) {
        magnitudes_ = std::max(magnitudes_, FiniteMagnitude(x));
        wide_ = WideLogAddExp(wide_, x);
      } else {
        magnitudes_ += FiniteMagnitude(x);
        wide_ = op_ == Op::kSum ? wide_ + x : wide_ * x;
      }
    }
  }

  Accumulated<T> Folded() const { return item_; }
  T value() const { return ResultOf(op_, item_); }

  // Whether a sum (or product) in some other order could be `value`.
  bool IsNear(T value) const {
    if (std::isnan(wide_)) return std::isnan(value);
    if (std::isinf(static_cast<T>(wide_))) return value == static_cast<T>(wide_);
    return std::fabs(value - wide_) <= num_operands_ * Unit();
  }

  // What an algorithm with an order of its own should give.
  Expected<T> InAnyOrder() const {
    const long double steps = op_ == Op::kSum ? std::min(num_operands_, 64 + num_operands_ / 1024) : num_operands_;
    return {Canonical(static_cast<T>(wide_)), steps * Unit()};
  }

 private:
  long double Unit() const {
    constexpr long double kEpsilon = std::numeric_limits<T>::epsilon();
    // No value in between is further from 0 than the elements, and the logarithm of their number.
    if (op_ == Op::kLogAddExp) return kEpsilon * (magnitudes_ + std::log(num_operands_) + 2);
    return kEpsilon * (op_ == Op::kSum ? magnitudes_ : std::fabs(wide_));
  }
  static long double FiniteMagnitude(T x) {
    const auto magnitude = std::fabs(static_cast<long double>(x));
    return std::isfinite(magnitude) ? magnitude : 0;
  }

  Op op_;
  bool rounds_;  // Else there is only Folded and value.
  Accumulated<T> item_;
  long double wide_;
  long double magnitudes_;
  long double num_operands_ = 1;
};

template <class T>
struct Prefixes {
  std::vector<Expected<T>> values;
  Accumulated<T> last;  // That of the last value, where the algorithm has no order of its own.
};

// start op x[0] op ... op x[i-1], for each i from 0 to the length of x. exact: no order of evaluation rounds.
template <class T>
Prefixes<T> Values(Op op, const std::vector<T>& x, Accumulated<T> start, bool exact, Order order = Order::kOurs) {
  const bool rounds =
      std::is_floating_point_v<T> && (((op == Op::kSum || op == Op::kProd) && !exact) || op == Op::kLogAddExp);
  const bool ordered = rounds && order == Order::kOurs;
  const auto combine = [op](Accumulated<T> a, Accumulated<T> b) { return Apply(op, a, b); };
  std::vector<Accumulated<T>> items;
  for (size_t i = 0; ordered && i < x.size(); ++i) items.push_back(ItemOf(op, x[i]));
  const Association association(items, start, combine);
  std::vector<Expected<T>> values(x.size() + 1);
  Fold<T> fold(op, start, rounds);
  for (size_t i = 0;; ++i) {
    const Accumulated<T> item = ordered ? association.Value(i) : fold.Folded();
    if (rounds && order == Order::kItsOwn) {
      values[i] = fold.InAnyOrder();
    } else {
      values[i].value = ResultOf(op, item);
    }
    if (ordered && !fold.IsNear(values[i].value)) throw std::logic_error("the reference itself is wrong");
    if (i == x.size()) return {values, item};
    fold.Add(x[i]);
  }
}

template <class T>
struct Scanned {
  std::vector<Expected<T>> out;  // And behind them what carry_out comes to.
  Accumulated<T> carry;          // As Prefixes::last.
};

// The scan of `in`.
template <class T>
Scanned<T> Scan(Op op, ScanKind kind, bool reverse, std::vector<T> in, Accumulated<T> start, bool exact,
                Order order = Order::kOurs) {
  if (reverse) std::ranges::reverse(in);
  auto [out, carry] = Values(op, in, start, exact, order);
  const Expected<T> carry_out = out.back();
  if (kind == ScanKind::kExclusive) {
    out.pop_back();
  } else {
    out.erase(out.begin());
  }
  if (reverse) std::ranges::reverse(out);
  out.push_back(carry_out);
  return {out, carry};
}

// Whether it is the carry that was asked for.
template <class T>
bool AdmitsCarry(Op op, const Scanned<T>& want, const std::vector<T>& got) {
  if (op != Op::kLogAddExp) return got.size() == 1 && want.out.back().Admits(got[0]);
  return std::ranges::equal(got, CarryOf(op, want.carry), SameBits<T>);
}

template <class T>
struct ExpectedState {
  Expected<T> value;
  uint64_t position;
  Accumulated<T> item;  // As Prefixes::last.
};

template <class T>
ExpectedState<T> Reduce(Op op, const std::vector<T>& in, uint64_t first_item, Accumulated<T> start,
                        uint64_t start_position, bool exact, Order order = Order::kOurs) {
  if (op != Op::kMin && op != Op::kMax) {
    const auto [values, last] = Values(op, in, start, exact, order);
    return {values.back(), start_position, last};
  }
  T best = start.value;
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
  return {{.value = Canonical(best)}, position, {Canonical(best)}};
}

template <class T>
bool Holds(Comparison comparison, T x, T value, T end) {
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
      if constexpr (kIsFloating<T>) return std::isnan(x);
      return false;
    case Comparison::kIsFinite:
      if constexpr (kIsFloating<T>) return !std::isnan(x) && !std::isinf(x);
      return true;
    case Comparison::kInRange:
      return x >= value && x < end;
  }
  return false;
}

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_ORACLE_H_
