#include "kernels/number.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/status.h"

namespace prefixd {
namespace {

template <class T, class Source>
std::optional<T> ExactInteger(Source value) {
  if constexpr (kIsFloating<Source>) {
    // The bounds are powers of two, so they are exact as doubles.
    const double lowest = kIsSignedInteger<T> ? -std::ldexp(1.0, std::numeric_limits<T>::digits) : 0.0;
    if (!(value >= lowest && value < std::ldexp(1.0, std::numeric_limits<T>::digits))) return std::nullopt;
    if (std::trunc(value) != value) return std::nullopt;
    return static_cast<T>(value);
  } else {
    if (!std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  }
}

template <class T, class Source>
absl::StatusOr<Value> ConvertScalar(Source value, std::string_view field) {
  if constexpr (kIsFloating<T>) {
    // A NaN comes out canonical whichever way it came in, also where it meets no element.
    const T converted = static_cast<T>(value);
    return Value::Of(converted == converted ? converted : std::numeric_limits<T>::quiet_NaN());
  } else {
    if (const std::optional<T> exact = ExactInteger<T>(value)) return Value::Of(*exact);
    return Error(absl::StatusCode::kInvalidArgument, "SCALAR_OUT_OF_RANGE", field,
                 StrCat(value, " is not a value of ", Name(kDTypeOf<T>)));
  }
}

}  // namespace

absl::StatusOr<Value> ToValue(const Number& number, DType dtype, std::string_view field) {
  return VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return std::visit([&](auto source) { return ConvertScalar<T>(source, field); }, number);
  });
}

}  // namespace prefixd
