// Operators on one array, and which file has the others.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/glue.h"
#include "kernels/cuda/map.cuh"
#include "kernels/interval.h"

namespace prefixd::cuda {
namespace {

template <class T>
struct Affine {
  using In = T;
  using Out = T;
  static constexpr int kNumInputs = 1;
  Wraps<T> a, b;
  __device__ T operator()(T x) const { return Canonical(static_cast<T>(a * x + b)); }
};

template <class T>
struct Abs {
  using In = T;
  using Out = T;
  static constexpr int kNumInputs = 1;
  __device__ T operator()(T x) const {
    if constexpr (kIsFloating<T>) {
      const Accumulator<T> wide = x;
      return Canonical(static_cast<T>(std::is_same_v<T, double> ? fabs(wide) : fabsf(wide)));
    } else {
      const auto bits = static_cast<Wraps<T>>(x);
      return static_cast<T>(x < 0 ? 0 - bits : bits);
    }
  }
};

template <class T>
struct Compare {
  using In = T;
  using Out = uint8_t;
  static constexpr int kNumInputs = 1;
  Interval<Accumulator<T>> interval;
  __device__ uint8_t operator()(Accumulator<T> x) const {
    return ((interval.low <= x) & (x <= interval.high)) != interval.outside ? 1 : 0;
  }
};

}  // namespace

cudaError_t LaunchMap(const MapArgs& args, LaunchContext* context) {
  switch (args.op) {
    case MapOp::kCast:
      return LaunchCast(args, context);
    case MapOp::kCompareArrays:
      return LaunchCompareArrays(WithoutGreater(args), context);
    case MapOp::kAffine:
      return VisitDType(args.dtype, [&](auto tag) {
        using T = BitsOrFloat<typename decltype(tag)::type>;
        return LaunchMapOf(args, Affine<T>{args.a.As<T>(), args.b.As<T>()}, context);
      });
    case MapOp::kAbs:
      return VisitDType(args.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_unsigned_v<T>) {
          return LaunchCast(args, context);
        } else {
          return LaunchMapOf(args, Abs<T>{}, context);
        }
      });
    case MapOp::kCompare:
      return VisitDType(args.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        return LaunchMapOf(args, Compare<T>{IntervalOf<T>(args.comparison, args.a, args.b)}, context);
      });
    default:
      return LaunchTwo(args, context);
  }
}

}  // namespace prefixd::cuda
