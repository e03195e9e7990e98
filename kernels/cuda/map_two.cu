// Operators on two arrays.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/map.cuh"

namespace prefixd::cuda {
namespace {

template <class T, Comparison kComparison>
struct CompareArrays {
  using In = T;
  using Out = uint8_t;
  static constexpr int kNumInputs = 2;
  __device__ uint8_t operator()(T x, T y) const {
    if constexpr (kComparison == Comparison::kLess) {
      return x < y ? 1 : 0;
    } else if constexpr (kComparison == Comparison::kLessEqual) {
      return x <= y ? 1 : 0;
    } else if constexpr (kComparison == Comparison::kEqual) {
      return x == y ? 1 : 0;
    } else {
      static_assert(kComparison == Comparison::kNotEqual);
      return x != y ? 1 : 0;
    }
  }
};

template <class T, MapOp kOp>
struct Arithmetic {
  using In = T;
  using Out = T;
  static constexpr int kNumInputs = 2;
  __device__ T operator()(T x, T y) const {
    const Wraps<T> a = x, b = y;
    if constexpr (kOp == MapOp::kAdd) {
      return Canonical(static_cast<T>(a + b));
    } else if constexpr (kOp == MapOp::kSubtract) {
      return Canonical(static_cast<T>(a - b));
    } else {
      static_assert(kOp == MapOp::kMultiply);
      return Canonical(static_cast<T>(a * b));
    }
  }
};

// The minimum and maximum of the scans.
template <class T, Op kOp>
struct Extremum {
  using In = T;
  using Out = T;
  static constexpr int kNumInputs = 2;
  __device__ T operator()(T x, T y) const {
    using O = Operator<kOp, T>;
    return O::Store(O::Combine(O::Load(x), O::Load(y)));
  }
};

template <class T>
struct Divide {
  using In = T;
  using Out = T;
  static constexpr int kNumInputs = 2;
  __device__ T operator()(T x, T y) const {
    if constexpr (kIsFloating<T>) {
      return Canonical(static_cast<T>(Accumulator<T>{x} / Accumulator<T>{y}));
    } else if constexpr (sizeof(T) <= 2) {
      // Half a unit farther from zero, a quotient is at least half of 1 / y away from any whole number. The fast
      // division is off by two units in the last place, which is less for every x and y of 16 bits.
      const auto dividend = static_cast<float>(x);
      const float quotient = __fdividef(dividend + copysignf(0.5f, dividend), static_cast<float>(y));
      return y == 0 ? T{0} : static_cast<T>(__float2int_rz(quotient));
    } else {
      const bool negates = kIsSignedInteger<T> && y == static_cast<T>(-1);  // The lowest by -1 would overflow.
      const T quotient = x / (y == 0 || negates ? T{1} : y);
      const T nonzero = negates ? static_cast<T>(0 - static_cast<Wraps<T>>(x)) : quotient;
      return y == 0 ? T{0} : nonzero;
    }
  }
};

}  // namespace

cudaError_t LaunchCompareArrays(const MapArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Bits = BitsOrFloat<T>;
    switch (args.comparison) {
      case Comparison::kLess:
        return LaunchMapOf(args, CompareArrays<T, Comparison::kLess>{}, context);
      case Comparison::kLessEqual:
        return LaunchMapOf(args, CompareArrays<T, Comparison::kLessEqual>{}, context);
      case Comparison::kEqual:
        return LaunchMapOf(args, CompareArrays<Bits, Comparison::kEqual>{}, context);
      case Comparison::kNotEqual:
        return LaunchMapOf(args, CompareArrays<Bits, Comparison::kNotEqual>{}, context);
      default:
        FatalValue("LaunchCompareArrays", args.comparison);
    }
  });
}

cudaError_t LaunchTwo(const MapArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Bits = BitsOrFloat<T>;
    switch (args.op) {
      case MapOp::kAdd:
        return LaunchMapOf(args, Arithmetic<Bits, MapOp::kAdd>{}, context);
      case MapOp::kSubtract:
        return LaunchMapOf(args, Arithmetic<Bits, MapOp::kSubtract>{}, context);
      case MapOp::kMultiply:
        return LaunchMapOf(args, Arithmetic<Bits, MapOp::kMultiply>{}, context);
      case MapOp::kDivide:
        return LaunchMapOf(args, Divide<T>{}, context);
      case MapOp::kMinimum:
        return LaunchMapOf(args, Extremum<T, Op::kMin>{}, context);
      case MapOp::kMaximum:
        return LaunchMapOf(args, Extremum<T, Op::kMax>{}, context);
      default:
        FatalValue("LaunchTwo", args.op);
    }
  });
}

}  // namespace prefixd::cuda
