// Casts from every type to every type.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/map.cuh"

namespace prefixd::cuda {
namespace {

// Truncates toward zero, and saturates; a NaN is 0. What is converted is in Out's range, so every machine agrees.
template <class Out, class In>
__device__ Out Saturated(In x) {
  constexpr int kBits = 8 * sizeof(Out) - kIsSignedInteger<Out>;
  constexpr int kInBits = sizeof(In) == 4 ? 24 : 53;
  constexpr In kBeyond = static_cast<In>(uint64_t{1} << (kBits - 1)) * 2;
  constexpr In kLow = kIsSignedInteger<Out> ? -kBeyond : In{0};
  // The largest In that Out holds. Longer integers hold larger ones, which are handled apart.
  constexpr In kHigh = kBeyond - (kBits > kInBits ? kBeyond / (uint64_t{1} << kInBits) : In{1});
  constexpr Out kMost = static_cast<Out>(~uint64_t{0} >> (64 - kBits));
  using Wide = std::conditional_t<(sizeof(Out) < 4), int32_t, Out>;
  const In number = x == x ? x : In{0};
  const In above = number < kLow ? kLow : number;
  const In within = above > kHigh ? kHigh : above;
  const auto result = static_cast<Out>(static_cast<Wide>(within));
  return kBits > kInBits && number >= kBeyond ? kMost : result;
}

template <class From, class To>
struct Cast {
  using In = From;
  using Out = To;
  static constexpr int kNumInputs = 1;
  __device__ Out operator()(In x) const {
    if constexpr (kIsFloating<In> && !kIsFloating<Out>) {
      return Saturated<Out>(Accumulator<In>{x});
    } else if constexpr (kIsNarrowFloat<Out>) {
      return Out(Accumulator<In>{x});  // Also from its own type: a NaN becomes canonical.
    } else {
      return Canonical(static_cast<Out>(x));
    }
  }
};

// Integers are cast alike where the sign shows in no bit: the sign of what comes out, and of what only loses bits.
template <class In, class Out>
cudaError_t LaunchCastOf(const MapArgs& args, LaunchContext* context) {
  constexpr bool kIntegers = !kIsFloating<In> && !kIsFloating<Out>;
  using From = std::conditional_t<kIntegers && sizeof(Out) <= sizeof(In), BitsOrFloat<In>, In>;
  using To = std::conditional_t<kIntegers, BitsOrFloat<Out>, Out>;
  return LaunchMapOf(args, Cast<From, To>{}, context);
}

}  // namespace

cudaError_t LaunchCast(const MapArgs& args, LaunchContext* context) {
  return VisitDType(args.dtype, [&](auto in) {
    return VisitDType(args.output(), [&](auto out) {
      return LaunchCastOf<typename decltype(in)::type, typename decltype(out)::type>(args, context);
    });
  });
}

}  // namespace prefixd::cuda
