#include "kernels/types.h"

#include <limits>

#include "base/fatal.h"
#include "base/status.h"

namespace prefixd {
namespace {

template <Op kOp, class T>
T TypedIdentity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kOp == Op::kSum || kOp == Op::kOr || kOp == Op::kXor) {
    return T{0};
  } else if constexpr (kOp == Op::kProd) {
    return T{1};
  } else if constexpr (kOp == Op::kMin) {
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  } else if constexpr (kOp == Op::kMax || kOp == Op::kLogAddExp) {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  } else {
    static_assert(kOp == Op::kAnd);
    return static_cast<T>(~T{0});
  }
}

}  // namespace

void FatalValue(std::string_view function, std::string_view name, int value) {
  Fatal(StrCat(function, " has no case for ", name.empty() ? "the unknown value" : name, " (", value, ")"));
}

std::string OutputNames(DType dtype) {
  std::string names;
#define PREFIXD_ADD(name, type, out_name, out_type) \
  if (dtype == DType::name) names += (names.empty() ? "" : ", ") + std::string(Name(DType::out_name));
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_ADD)
#undef PREFIXD_ADD
  return names;
}

Value Identity(Op op, DType dtype) {
  if (IsRecurrence(Primitive::kScan, dtype, dtype, op)) op = Op::kSum;
  return VisitDType(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return VisitOp<T>(op, [](auto tag) { return Value::Of(TypedIdentity<decltype(tag)::kValue, T>()); });
  });
}

Value Neutral(Op op, DType dtype) {
  if (op != Op::kSum && !IsRecurrence(Primitive::kScan, dtype, dtype, op)) return Identity(op, dtype);
  return VisitDType(dtype, [](auto type) {
    using T = typename decltype(type)::type;
    return Value::Of(static_cast<T>(-0.0));
  });
}

Value ToAccumulator(Value value, DType out_dtype) {
  return VisitDType(out_dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return Value::Of(static_cast<Accumulator<T>>(value.As<T>()));
  });
}

}  // namespace prefixd
