// From values to C++ types and functions, for what kTextbooksServe and no more: headers of parallel algorithms are long
// to compile, so nothing is instantiated that is not served.
#ifndef PREFIXD_KERNELS_YARDSTICKS_CPU_TEXTBOOK_OPS_H_
#define PREFIXD_KERNELS_YARDSTICKS_CPU_TEXTBOOK_OPS_H_

#include "kernels/cpu/operators.h"
#include "kernels/yardsticks/serves.h"

namespace prefixd::cpu {

// Calls f(TypeTag<T>{}, op) for the C++ type and the function object. Ends the process unless kTextbooksServe the
// combination.
template <class F>
void VisitTextbookOp(DType dtype, Op op, F&& f) {
  VisitDType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    VisitOp<T>(op, [&](auto tag) {
      constexpr Op kOp = decltype(tag)::kValue;
      if constexpr (kTextbooksServe(kDTypeOf<T>, kDTypeOf<T>, kOp)) {
        f(type, FunctionOf<kOp>());
      } else {
        FatalValue("VisitTextbookOp", op);
      }
    });
  });
}

}  // namespace prefixd::cpu

#endif  // PREFIXD_KERNELS_YARDSTICKS_CPU_TEXTBOOK_OPS_H_
