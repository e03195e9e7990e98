// The words of the glue: what stands between the primitives of a program. Its arithmetic is in NUMERICS.md.
// Plain C++, as types.h.
#ifndef PREFIXD_KERNELS_GLUE_H_
#define PREFIXD_KERNELS_GLUE_H_

#include "kernels/types.h"

namespace prefixd {

// As the lists in types.h: in the order of the numbers on the wire, a new name goes to the end.
// X(enumerator, name)
#define PREFIXD_FILL_KINDS(X) \
  X(kConstant, "constant")    \
  X(kIota, "iota")            \
  X(kRandom, "random")

// X(enumerator, name, number of arrays it reads)
#define PREFIXD_MAP_OPS(X)               \
  X(kCast, "cast", 1)                    \
  X(kAffine, "affine", 1)                \
  X(kAbs, "abs", 1)                      \
  X(kCompare, "compare", 1)              \
  X(kCompareArrays, "compare_arrays", 2) \
  X(kAdd, "add", 2)                      \
  X(kSubtract, "subtract", 2)            \
  X(kMultiply, "multiply", 2)            \
  X(kDivide, "divide", 2)                \
  X(kMinimum, "minimum", 2)              \
  X(kMaximum, "maximum", 2)

PREFIXD_DEFINE_ENUM_(FillKind, PREFIXD_FILL_KINDS)
PREFIXD_DEFINE_ENUM_(MapOp, PREFIXD_MAP_OPS)

inline constexpr int kNumFillKinds = kNamesOf<FillKind>.size();
inline constexpr int kNumMapOps = kNamesOf<MapOp>.size();

// The arrays that the operator reads.
constexpr int NumInputs(MapOp op) {
  switch (op) {
#define PREFIXD_CASE(enumerator, name, num_inputs) \
  case MapOp::enumerator:                          \
    return num_inputs;
    PREFIXD_MAP_OPS(PREFIXD_CASE)  // NOLINT(bugprone-branch-clone): the list says which of them are alike.
#undef PREFIXD_CASE
  }
  FatalValue("NumInputs", op);
}

// The type of what it writes: of comparisons u8, whose bytes are 0 and 1. cast_dtype counts for kCast alone.
constexpr DType MapOutput(MapOp op, DType dtype, DType cast_dtype) {
  if (op == MapOp::kCast) return cast_dtype;
  return op == MapOp::kCompare || op == MapOp::kCompareArrays ? DType::kU8 : dtype;
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_GLUE_H_
