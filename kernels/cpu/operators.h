// The operators on single elements, for the CPU's loops.
//
//   VisitFunction<float>(Op::kSum, [&](auto op) { acc = op(acc, x); });
//   out[i] = Canonical(acc);
#ifndef PREFIXD_KERNELS_CPU_OPERATORS_H_
#define PREFIXD_KERNELS_CPU_OPERATORS_H_

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/log_add_exp.h"
#include "kernels/types.h"

namespace prefixd::cpu {

// The unsigned type in which T's arithmetic wraps; at least unsigned, since narrower ones are promoted to signed int.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
bool IsNan(T v) {
  return v != v;
}

// Replaces any NaN by the canonical NaN, the only one that leaves the device; returns any other value as it is.
template <class T>
T Canonical(T v) {
  if constexpr (kIsFloating<T>) return IsNan(v) ? std::numeric_limits<T>::quiet_NaN() : v;
  return v;
}

// An integer that orders as T's values do, -0 before +0; meaningless for NaN.
template <class T>
auto OrderKey(T v) {
  if constexpr (kIsFloating<T>) {
    using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    const auto bits = std::bit_cast<Bits>(v);
    // Negative numbers are sign and magnitude: flipping the magnitude makes larger magnitudes smaller.
    return bits < 0 ? static_cast<Bits>(bits ^ std::numeric_limits<Bits>::max()) : bits;
  } else {
    return v;
  }
}

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) return a + b;
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Prod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (kIsFloating<T>) return a * b;
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct Min {
  // The smaller rank wins; a NaN beats everything.
  template <class T>
  static auto Rank(T v) {
    const auto key = OrderKey(v);
    return IsNan(v) ? std::numeric_limits<decltype(OrderKey(v))>::lowest() : key;
  }
  template <class T>
  static bool Beats(T a, T b) {
    return Rank(a) < Rank(b);
  }
  template <class T>
  T operator()(T a, T b) const {
    return Beats(b, a) ? b : a;
  }
};

struct Max {
  // The larger rank wins; a NaN beats everything.
  template <class T>
  static auto Rank(T v) {
    const auto key = OrderKey(v);
    return IsNan(v) ? std::numeric_limits<decltype(OrderKey(v))>::max() : key;
  }
  template <class T>
  static bool Beats(T a, T b) {
    return Rank(a) > Rank(b);
  }
  template <class T>
  T operator()(T a, T b) const {
    return Beats(b, a) ? b : a;
  }
};

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};

struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};

struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

struct AddScaled {
  template <class T>
  Scaled<T> operator()(Scaled<T> a, Scaled<T> b) const {
    return LogAddExpOf<T>::Combine(a, b);
  }
};

template <class O>
inline constexpr bool kIsExtremum = std::is_same_v<O, Min> || std::is_same_v<O, Max>;

template <Op kOp>
auto FunctionOf() {
  if constexpr (kOp == Op::kSum) {
    return Sum{};
  } else if constexpr (kOp == Op::kProd) {
    return Prod{};
  } else if constexpr (kOp == Op::kLogAddExp) {
    return AddScaled{};
  } else if constexpr (kOp == Op::kMin) {
    return Min{};
  } else if constexpr (kOp == Op::kMax) {
    return Max{};
  } else if constexpr (kOp == Op::kAnd) {
    return And{};
  } else if constexpr (kOp == Op::kOr) {
    return Or{};
  } else {
    static_assert(kOp == Op::kXor);
    return Xor{};
  }
}

// Calls f with the function object of `op`, which is of T or, of log_add_exp, of Scaled<T>, and returns its result.
// Ends the process for an operator that scan and reduce do not serve on T.
template <class T, class F>
auto VisitFunction(Op op, F&& f) {
  return VisitOp<T>(op, [&](auto tag) { return f(FunctionOf<decltype(tag)::kValue>()); });
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_CPU_OPERATORS_H_
