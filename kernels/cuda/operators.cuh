// The operators on the device: one functor per (Op, element type), and the rules for NaN, -0.0 and overflow.
//
//   using Sum = Operator<Op::kSum, int32_t>;
//   out = Sum::Store(Sum::Combine(Sum::Load(left), Sum::Load(right)));   left is the earlier element
//
// Integers wrap. Floating-point min and max are IEEE 754-2019 minimum and maximum: NaN beats everything, -0 < +0.
#ifndef PREFIXD_KERNELS_CUDA_OPERATORS_CUH_
#define PREFIXD_KERNELS_CUDA_OPERATORS_CUH_

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/args/reduce.h"
#include "kernels/log_add_exp.h"
#include "kernels/types.h"
#include "kernels/wide_sum.h"

namespace prefixd::cuda {

// For a value that leaves the device: a NaN becomes the canonical quiet NaN of its type. (The NaN that the hardware
// makes, 0x7fffffff for float, is a different one.) Conversions to f16 and bf16 have made it so already.
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

// An integer that orders as floating-point values do, -0 before +0, and back: negative values are sign and magnitude,
// and flipping the magnitude makes larger magnitudes smaller.
template <class Key>
inline constexpr Key kMagnitudeBits = std::numeric_limits<Key>::max();

template <class Key>
__device__ Key FlipMagnitude(Key bits) {
  return bits < 0 ? bits ^ kMagnitudeBits<Key> : bits;
}
inline __device__ int32_t OrderKey(float v) { return FlipMagnitude(__float_as_int(v)); }
inline __device__ int64_t OrderKey(double v) { return FlipMagnitude<int64_t>(__double_as_longlong(v)); }
inline __device__ float FromOrderKey(int32_t key) { return __int_as_float(FlipMagnitude(key)); }
inline __device__ double FromOrderKey(int64_t key) { return __longlong_as_double(FlipMagnitude(key)); }

// Elements are combined as Items of 4 or 8 bytes: kernels Load what they read, Combine, and Store what they write, an
// Out. kAnyOrder: the bits do not depend on the order.
template <Op kOp, class Out>
struct Operator {
  static_assert(!kIsFloating<Out>);
  // Narrow integers are computed in 32 bits: cutting off the high bits at the end gives the wrapped result.
  using Item =
      std::conditional_t<(sizeof(Out) >= 4), Out, std::conditional_t<kIsSignedInteger<Out>, int32_t, uint32_t>>;
  static constexpr bool kAnyOrder = true;

  template <class In>
  static __device__ Item Load(In element) {
    return static_cast<Item>(element);
  }
  static __device__ Out Store(Item item) { return static_cast<Out>(item); }
  static __device__ Item Combine(Item left, Item right) {
    using Unsigned = std::make_unsigned_t<Item>;  // Signed overflow is undefined, unsigned wraps.
    const auto a = static_cast<Unsigned>(left);
    const auto b = static_cast<Unsigned>(right);
    if constexpr (kOp == Op::kMin) {
      return min(left, right);
    } else if constexpr (kOp == Op::kMax) {
      return max(left, right);
    } else if constexpr (kOp == Op::kSum) {
      return static_cast<Item>(a + b);
    } else if constexpr (kOp == Op::kProd) {
      return static_cast<Item>(a * b);
    } else if constexpr (kOp == Op::kAnd) {
      return static_cast<Item>(a & b);
    } else if constexpr (kOp == Op::kOr) {
      return static_cast<Item>(a | b);
    } else {
      static_assert(kOp == Op::kXor);
      return static_cast<Item>(a ^ b);
    }
  }
};

// Neutral, for the operators of the kernels too.
template <Op kOp, class Out>
Out NeutralOf() {
  return Neutral(kOp == Op::kWideSum ? Op::kSum : kOp, kDTypeOf<Out>).template As<Out>();
}

// Floats by an operator that rounds: the bits depend on the order.
template <Op kOp, class Out>
requires(std::is_floating_point_v<Out> && (kOp == Op::kSum || kOp == Op::kProd)) struct Operator<kOp, Out> {
  using Item = Out;
  static constexpr bool kAnyOrder = false;

  template <class In>
  static __device__ Item Load(In element) {
    return static_cast<Item>(element);
  }
  static __device__ Out Store(Item item) { return Canonical(item); }
  static __device__ Item Combine(Item left, Item right) {
    if constexpr (kOp == Op::kSum) {
      return left + right;
    } else {
      return left * right;
    }
  }
};

// Floats as scaled exponentials.
template <class Out>
requires std::is_floating_point_v<Out>
struct Operator<Op::kLogAddExp, Out> {
  using Function = LogAddExpOf<Out>;
  using Item = Scaled<Out>;
  using Carry = Item;
  static constexpr bool kAnyOrder = false;

  template <class In>
  static __device__ Item Load(In element) {
    return Function::Load(static_cast<Out>(element));
  }
  static __device__ Item Load(Carry carry) { return carry; }
  static __device__ Out Store(Item item) { return Function::Store(item); }
  static __device__ Item Combine(Item left, Item right) { return Function::Combine(left, right); }

  static __device__ Item FromState(const ReduceState& state) {
    return {ValueAs<Out>(state.value), static_cast<Out>(state.second)};
  }
  static __device__ ReduceState ToState(Item item, uint64_t position) {
    const Item settled = Settled(item);
    return {ValueOf(settled.sum), position, settled.exponent};
  }
};

// Floating-point min and max, computed on integers that order alike; a NaN beats everything.
template <Op kOp, class Out>
requires(std::is_floating_point_v<Out> && (kOp == Op::kMin || kOp == Op::kMax)) struct OrderKeys {
  using Item = decltype(OrderKey(Out{}));
  static constexpr bool kAnyOrder = true;
  static constexpr Item kNan = kOp == Op::kMin ? std::numeric_limits<Item>::min() : std::numeric_limits<Item>::max();

  template <class In>
  static __device__ Item Load(In element) {
    return element != element ? kNan : OrderKey(static_cast<Out>(element));
  }
  static __device__ Out Store(Item item) { return Canonical(FromOrderKey(item)); }
  static __device__ Item Combine(Item left, Item right) {
    return kOp == Op::kMin ? min(left, right) : max(left, right);
  }
};

template <Op kOp>
requires(kOp == Op::kMin || kOp == Op::kMax) struct Operator<kOp, double> : OrderKeys<kOp, double> {
};

template <Op kOp>
requires(kOp == Op::kMin || kOp == Op::kMax) struct Operator<kOp, float> {
  using Item = float;
  static constexpr bool kAnyOrder = true;

  static __device__ Item Load(float element) { return element; }
  static __device__ float Store(Item item) { return Canonical(item); }
  static __device__ Item Combine(Item left, Item right) {
#if __CUDA_ARCH__ >= 800
    Item result;  // These instructions treat NaN and -0 as we do.
    if constexpr (kOp == Op::kMin) {
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(left), "f"(right));
    } else {
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(left), "f"(right));
    }
    return result;
#else
    using Keys = OrderKeys<kOp, float>;
    return Keys::Store(Keys::Combine(Keys::Load(left), Keys::Load(right)));
#endif
  }
};

// A NaN of a pair that an instruction made, 0x7fff, becomes the canonical one: as signed integers all numbers are below
// that.
template <class T>
__device__ uint32_t CanonicalPair(uint32_t pair) {
  return __vmins2(pair, std::is_same_v<T, Float16> ? 0x7e007e00 : 0x7fc07fc0);
}

// Two neighbours in memory, each rounded to T once: by one instruction for both, and one for their NaNs.
template <class T>
__device__ uint32_t RoundedPair(float first, float second) {
#if __CUDA_ARCH__ >= 900
  uint32_t pair;
  if constexpr (std::is_same_v<T, Float16>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  }
  return CanonicalPair<T>(pair);
#else
  return T(first).bits | uint32_t{T(second).bits} << 16;
#endif
}

// f16 and bf16: elements are widened to f32 and combined as such, and each result is rounded once. Carries are not.
template <Op kOp, class Out>
requires kIsNarrowFloat<Out>
struct Operator<kOp, Out> : Operator<kOp, float> {
  using Wide = Operator<kOp, float>;
  using Item = typename Wide::Item;
  using Carry = Item;

  static __device__ Out Store(Item item) { return Out(Unrounded(item)); }
  // NaNs of any kind.
  static __device__ float Unrounded(Item item) {
    if constexpr (std::is_same_v<Item, float>) {
      return item;
    } else {
      return Wide::Store(item);
    }
  }
};

// Whether signed and unsigned integers give the same bits.
template <Op kOp>
inline constexpr bool kIgnoresSign =
    kOp == Op::kSum || kOp == Op::kProd || kOp == Op::kAnd || kOp == Op::kOr || kOp == Op::kXor;

// The type in which an operator combines elements that keep their type: unsigned where the sign is ignored, so that
// half the kernels are enough.
template <class T, Op kOp>
using WrappingType = typename std::conditional_t<!kIsFloating<T> && kIgnoresSign<kOp>, std::make_unsigned<T>,
                                                 std::type_identity<T>>::type;

inline __device__ Compensated<double> Canonical(Compensated<double> v) { return Settled(v); }
template <class T>
__device__ Scaled<T> Canonical(Scaled<T> v) {
  return Settled(v);
}

}  // namespace prefixd::cuda

#endif  // PREFIXD_KERNELS_CUDA_OPERATORS_CUH_
