// Every scan that is served, for tables of them.
#ifndef PREFIXD_KERNELS_CPU_SIMD_EACH_SCAN_H_
#define PREFIXD_KERNELS_CPU_SIMD_EACH_SCAN_H_

#include "kernels/types.h"

namespace prefixd::cpu::PREFIXD_ISA {
namespace {

// Calls set.operator()<In, Out, kOp>() for each element type, output type and operator of a scan.
template <class Set>
constexpr void ForEachScan(Set set) {
#define PREFIXD_SET_OP(enumerator, name)                                                      \
  if constexpr (IsSupported(Primitive::kScan, kDTypeOf<In>, kDTypeOf<Out>, Op::enumerator)) { \
    set.template operator()<In, Out, Op::enumerator>();                                       \
  }
#define PREFIXD_SET(name, type, out_name, out_type) \
  {                                                 \
    using In = type;                                \
    using Out = out_type;                           \
    PREFIXD_OPS(PREFIXD_SET_OP)                     \
  }
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_SET)
#undef PREFIXD_SET
#undef PREFIXD_SET_OP
}

}  // namespace
}  // namespace prefixd::cpu::PREFIXD_ISA

#endif  // PREFIXD_KERNELS_CPU_SIMD_EACH_SCAN_H_
