// What the yardsticks serve. They are there to compare with, so they leave out what nobody compares: the rows of
// Device::Algorithms name one of these rules, and device code instantiates no more than it says.
#ifndef PREFIXD_KERNELS_YARDSTICKS_SERVES_H_
#define PREFIXD_KERNELS_YARDSTICKS_SERVES_H_

#include <string_view>

#include "kernels/device.h"
#include "kernels/types.h"

namespace prefixd {

// Elements of 4 or 8 bytes that come out as they went in.
constexpr bool KeepsWideType(DType dtype, DType out_dtype) { return dtype == out_dtype && SizeOf(dtype) >= 4; }

inline constexpr Served kTextbooksServe = {[](DType dtype, DType out_dtype, Op op) {
                                             return KeepsWideType(dtype, out_dtype) &&
                                                    (op == Op::kSum || op == Op::kMin || op == Op::kMax);
                                           },
                                           "sum, min and max of 4- and 8-byte types to the same type"};

inline constexpr Served kTextbookCompactsServe = {
    [](DType dtype, DType out_dtype, Op) { return KeepsWideType(dtype, out_dtype); }, "4- and 8-byte types"};

inline constexpr Served kKahanServes = {[](DType dtype, DType out_dtype, Op op) {
                                          return KeepsWideType(dtype, out_dtype) && IsFloating(dtype) && op == Op::kSum;
                                        },
                                        "sum of f32 and f64 to the same type"};

inline constexpr Served kCubServes = {
    [](DType dtype, DType out_dtype, Op op) {
      return (op == Op::kSum && !IsNarrowFloat(dtype)) || kTextbooksServe(dtype, out_dtype, op);
    },
    "sum of all types but f16 and bf16 to all outputs, min and max of 4- and 8-byte types to the same type"};

inline constexpr Served kCubCompactsServe = {[](DType dtype, DType, Op) { return !IsNarrowFloat(dtype); },
                                             "all types but f16 and bf16"};

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_YARDSTICKS_SERVES_H_
