// The operators on the device: one functor per (Op, element type), and the rules for NaN, -0.0 and overflow.
//
//   Operator<Op::kSum, int32_t>::Combine(left, right)   left is the earlier element
//
// Integers wrap. Floating-point min and max are IEEE 754-2019 minimum and maximum: NaN beats everything, -0 < +0.
#ifndef PREFIXD_KERNELS_CUDA_OPERATORS_CUH_
#define PREFIXD_KERNELS_CUDA_OPERATORS_CUH_

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/types.h"

namespace prefixd::cuda {

// The sign bit, which tells -0.0 from +0.0.
inline __device__ bool IsNegative(float v) { return __float_as_int(v) < 0; }
inline __device__ bool IsNegative(double v) { return __double_as_longlong(v) < 0; }

// What is written where a value leaves the device: a NaN becomes the canonical quiet NaN of its type. (The hardware's
// own, 0x7fffffff for float, is another.)
template <class T>
__device__ T Canonical(T v) {
  if constexpr (std::is_same_v<T, float>) {
    return v != v ? __int_as_float(0x7fc00000) : v;
  } else if constexpr (std::is_same_v<T, double>) {
    return v != v ? __longlong_as_double(0x7ff8000000000000) : v;
  } else {
    return v;
  }
}

// Whether min (or max) prefers a to b. Neither of two NaNs, or of two equal values, is preferred.
template <Op kOp, class T>
__device__ bool IsPreferred(T a, T b) {
  static_assert(kOp == Op::kMin || kOp == Op::kMax);
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return b == b;
    if (a == b) return kOp == Op::kMin ? IsNegative(a) && !IsNegative(b) : !IsNegative(a) && IsNegative(b);
  }
  return kOp == Op::kMin ? a < b : b < a;
}

template <Op kOp, class T>
struct Operator {
  static __device__ T Combine(T left, T right) {
    if constexpr (kOp == Op::kMin || kOp == Op::kMax) {
      return IsPreferred<kOp>(right, left) ? right : left;
    } else if constexpr (std::is_floating_point_v<T>) {
      static_assert(kOp == Op::kSum || kOp == Op::kProd);
      return kOp == Op::kSum ? left + right : left * right;
    } else {
      using Unsigned = std::make_unsigned_t<T>;  // Signed overflow is undefined, unsigned wraps.
      const auto a = static_cast<Unsigned>(left);
      const auto b = static_cast<Unsigned>(right);
      if constexpr (kOp == Op::kSum) return static_cast<T>(a + b);
      if constexpr (kOp == Op::kProd) return static_cast<T>(a * b);
      if constexpr (kOp == Op::kAnd) return static_cast<T>(a & b);
      if constexpr (kOp == Op::kOr) return static_cast<T>(a | b);
      if constexpr (kOp == Op::kXor) return static_cast<T>(a ^ b);
    }
  }
};

// Value::As and Value::Of on the device.
template <class T>
__device__ T ValueAs(Value value) {
  T v;
  memcpy(&v, &value.bits, sizeof(T));
  return v;
}
template <class T>
__device__ Value ValueOf(T v) {
  Value value;
  memcpy(&value.bits, &v, sizeof(T));
  return value;
}

// Calls f(OpTag<op>{}) for an op that IsSupported on T; cudaErrorInvalidValue for another.
template <Op kOp>
struct OpTag {
  static constexpr Op kValue = kOp;
};

template <class T, class F>
cudaError_t VisitOp(Op op, F&& f) {
  if constexpr (std::is_integral_v<T>) {
    if (op == Op::kAnd) return f(OpTag<Op::kAnd>{});
    if (op == Op::kOr) return f(OpTag<Op::kOr>{});
    if (op == Op::kXor) return f(OpTag<Op::kXor>{});
  }
  if (op == Op::kSum) return f(OpTag<Op::kSum>{});
  if (op == Op::kProd) return f(OpTag<Op::kProd>{});
  if (op == Op::kMin) return f(OpTag<Op::kMin>{});
  if (op == Op::kMax) return f(OpTag<Op::kMax>{});
  return cudaErrorInvalidValue;
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_OPERATORS_CUH_
