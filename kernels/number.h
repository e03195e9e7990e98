// A number as callers write it, before it is known of which element type it is to be.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_KERNELS_NUMBER_H_
#define PREFIXD_KERNELS_NUMBER_H_

#include <cstdint>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"
#include "kernels/types.h"

namespace prefixd {

using Number = std::variant<int64_t, uint64_t, double>;

// The number as a value of dtype: exactly for an integer, rounded for a floating-point type; a NaN comes out canonical.
// field: where it comes from, which an error names.
// Needs:  IsSupported(dtype).
// Errors: INVALID_ARGUMENT (SCALAR_OUT_OF_RANGE).
// Example: 3.0 as kI32 -> 3; 3.5 as kI32, -1 as kU8 -> errors
absl::StatusOr<Value> ToValue(const Number& number, DType dtype, std::string_view field);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_NUMBER_H_
