#include "kernels/yardsticks/cpu/kahan.h"

#include <cmath>

#include "kernels/cpu/operators.h"

namespace prefixd::cpu {
namespace {

template <class T>
T CompensatedSum(const T* in, uint64_t num_items, T start) {
  T sum = start;
  T lost = 0;
  for (uint64_t i = 0; i < num_items; ++i) {
    const T next = sum + in[i];
    lost += std::fabs(sum) >= std::fabs(in[i]) ? (sum - next) + in[i] : (in[i] - next) + sum;
    sum = next;
  }
  // For an infinite sum `lost` is NaN, though nothing was lost; and adding a `lost` of +0.0 would turn -0.0 into +0.0.
  return std::isfinite(sum) && lost != 0 ? sum + lost : sum;
}

}  // namespace

Work ReduceKahan(const ReduceArgs& args) {
  const ReduceState state = args.state_in != nullptr ? *args.state_in : args.init;
  const auto sum = [&](auto tag) {
    using T = decltype(tag);
    return Value::Of(Canonical(CompensatedSum(static_cast<const T*>(args.in), args.num_items, state.value.As<T>())));
  };
  *args.state_out = {args.dtype == DType::kF64 ? sum(double{}) : sum(float{}), state.position};
  if (args.num_items == 0) return {};
  return {.launches = 1, .num_bytes = args.num_items * SizeOf(args.dtype)};
}

}  // namespace prefixd::cpu
