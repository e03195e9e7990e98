// The words of the domain: element types, operators, primitives, the names of algorithms, and what is supported.
// Plain C++; knows nothing of CUDA or of the wire. Everything here is a value: no threads, no ownership.
#ifndef PREFIXD_KERNELS_TYPES_H_
#define PREFIXD_KERNELS_TYPES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/narrow_float.h"

namespace prefixd {

// Bits of a result depend on data, spec and this number alone: NUMERICS.md.
inline constexpr uint32_t kNumericsVersion = 1;

// ---- The lists -----------------------------------------------------------------------------------------------------
// Everything that has a name stands in one of these lists, once. Enums, names, counts, sizes, dispatch, validation,
// GetServerInfo and the conformance suite follow from them. Each list has the order of the numbers on the wire, so a
// new name goes to the end.

// ENTRY(enumerator, name, C++ type, X) for every element type. X is passed on unchanged.
#define PREFIXD_DTYPES(ENTRY, X)    \
  ENTRY(kI8, "i8", int8_t, X)       \
  ENTRY(kU8, "u8", uint8_t, X)      \
  ENTRY(kI16, "i16", int16_t, X)    \
  ENTRY(kU16, "u16", uint16_t, X)   \
  ENTRY(kI32, "i32", int32_t, X)    \
  ENTRY(kU32, "u32", uint32_t, X)   \
  ENTRY(kI64, "i64", int64_t, X)    \
  ENTRY(kU64, "u64", uint64_t, X)   \
  ENTRY(kF16, "f16", Float16, X)    \
  ENTRY(kBF16, "bf16", BFloat16, X) \
  ENTRY(kF32, "f32", float, X)      \
  ENTRY(kF64, "f64", double, X)

// X(enumerator, C++ type) for every element type.
#define PREFIXD_FOR_EACH_DTYPE(X) PREFIXD_DTYPES(PREFIXD_CALL_WITH_TYPE_, X)
#define PREFIXD_CALL_WITH_TYPE_(enumerator, name, type, X) X(enumerator, type)

// X(enumerator, C++ type, output enumerator, output C++ type) for every output type of every dtype. Scan and reduce
// convert elements to the output type, combine them in it (f16 and bf16 in f32: AccumulatorOf) and return it. The dtype
// itself comes first.
#define PREFIXD_FOR_EACH_OUTPUT(X)    \
  X(kI8, int8_t, kI8, int8_t)         \
  X(kI8, int8_t, kI32, int32_t)       \
  X(kI8, int8_t, kI64, int64_t)       \
  X(kU8, uint8_t, kU8, uint8_t)       \
  X(kU8, uint8_t, kU32, uint32_t)     \
  X(kU8, uint8_t, kU64, uint64_t)     \
  X(kI16, int16_t, kI16, int16_t)     \
  X(kI16, int16_t, kI32, int32_t)     \
  X(kI16, int16_t, kI64, int64_t)     \
  X(kU16, uint16_t, kU16, uint16_t)   \
  X(kU16, uint16_t, kU32, uint32_t)   \
  X(kU16, uint16_t, kU64, uint64_t)   \
  X(kI32, int32_t, kI32, int32_t)     \
  X(kI32, int32_t, kI64, int64_t)     \
  X(kU32, uint32_t, kU32, uint32_t)   \
  X(kU32, uint32_t, kU64, uint64_t)   \
  X(kI64, int64_t, kI64, int64_t)     \
  X(kU64, uint64_t, kU64, uint64_t)   \
  X(kF16, Float16, kF16, Float16)     \
  X(kF16, Float16, kF32, float)       \
  X(kBF16, BFloat16, kBF16, BFloat16) \
  X(kBF16, BFloat16, kF32, float)     \
  X(kF32, float, kF32, float)         \
  X(kF32, float, kF64, double)        \
  X(kF64, double, kF64, double)

// X(enumerator, name)
#define PREFIXD_OPS(X)                      \
  X(kSum, "sum")                            \
  X(kProd, "prod")                          \
  X(kMin, "min")                            \
  X(kMax, "max")                            \
  X(kAnd, "and")                            \
  X(kOr, "or")                              \
  X(kXor, "xor")                            \
  X(kLinearRecurrence, "linear_recurrence") \
  X(kLogAddExp, "log_add_exp")

// X(enumerator, name, whether it combines elements by an operator)
#define PREFIXD_PRIMITIVES(X)   \
  X(kScan, "scan", true)        \
  X(kReduce, "reduce", true)    \
  X(kCompact, "compact", false) \
  X(kDifference, "difference", false)

// In what sums are made. WIDE: of f32 in f64, and of f64 in twice its precision; each result is rounded once.
#define PREFIXD_PRECISIONS(X) \
  X(kNative, "native")        \
  X(kWide, "wide")

#define PREFIXD_SCAN_KINDS(X) \
  X(kInclusive, "inclusive")  \
  X(kExclusive, "exclusive")

#define PREFIXD_COMPARISONS(X) \
  X(kLess, "<")                \
  X(kLessEqual, "<=")          \
  X(kGreater, ">")             \
  X(kGreaterEqual, ">=")       \
  X(kEqual, "==")              \
  X(kNotEqual, "!=")           \
  X(kIsNan, "is-nan")          \
  X(kIsFinite, "is-finite")    \
  X(kInRange, "in-range")

// X(enumerator, name, whether its results have the bits of NUMERICS.md; one with a tile scan by name never does)
#define PREFIXD_STRATEGIES(X)                           \
  X(kDefault, "default", true)                          \
  X(kChained, "chained", true)                          \
  X(kSingleLaunch, "single_launch", true)               \
  X(kReduceThenScan, "reduce_then_scan", true)          \
  X(kSequential, "sequential", false)                   \
  X(kNaive, "naive", false)                             \
  X(kHillisSteeleGlobal, "hillis_steele_global", false) \
  X(kThreePhase, "three_phase", false)                  \
  X(kGridSync, "grid_sync", false)                      \
  X(kChainedSerial, "chained_serial", false)            \
  X(kCub, "cub", false)                                 \
  X(kThrust, "thrust", false)                           \
  X(kTreeInterleaved, "tree_interleaved", false)        \
  X(kTreeSequential, "tree_sequential", false)          \
  X(kWarpShuffle, "warp_shuffle", false)                \
  X(kTwoPass, "two_pass", false)                        \
  X(kAtomic, "atomic", false)                           \
  X(kKahan, "kahan", false)                             \
  X(kThreeKernel, "three_kernel", false)                \
  X(kAtomicCounter, "atomic_counter", false)            \
  X(kStd, "std", false)                                 \
  X(kOneTbb, "onetbb", false)

// How one block scans its tile.
#define PREFIXD_TILE_SCANS(X)       \
  X(kDefault, "default")            \
  X(kHillisSteele, "hillis_steele") \
  X(kKoggeStone, "kogge_stone")     \
  X(kBrentKung, "brent_kung")       \
  X(kBlelloch, "blelloch")          \
  X(kWarpShared, "warp_shared")     \
  X(kWarpShuffle, "warp_shuffle")   \
  X(kWarpSharedRegister, "warp_shared_register")

// ---- Enums and their names -----------------------------------------------------------------------------------------
// The names of an enum's values, in their order. Empty for an enum without names.
template <class Enum>
inline constexpr std::array<std::string_view, 0> kNamesOf = {};

#define PREFIXD_ENUMERATOR_(enumerator, ...) enumerator,
#define PREFIXD_NAME_(enumerator, name, ...) std::string_view(name),
#define PREFIXD_DEFINE_ENUM_(Enum, LIST)                   \
  enum class Enum : uint8_t { LIST(PREFIXD_ENUMERATOR_) }; \
  template <>                                              \
  inline constexpr std::array kNamesOf<Enum> = {LIST(PREFIXD_NAME_)};
#define PREFIXD_ALL_DTYPES_(X) PREFIXD_DTYPES(X, )

PREFIXD_DEFINE_ENUM_(DType, PREFIXD_ALL_DTYPES_)
enum class Op : uint8_t {
  PREFIXD_OPS(PREFIXD_ENUMERATOR_)  //
  kWideSum  // The kernels' own, without a name: callers ask for a sum, and say in which precision.
};
template <>
inline constexpr std::array kNamesOf<Op> = {PREFIXD_OPS(PREFIXD_NAME_)};
PREFIXD_DEFINE_ENUM_(Primitive, PREFIXD_PRIMITIVES)
PREFIXD_DEFINE_ENUM_(Precision, PREFIXD_PRECISIONS)
PREFIXD_DEFINE_ENUM_(ScanKind, PREFIXD_SCAN_KINDS)
PREFIXD_DEFINE_ENUM_(Comparison, PREFIXD_COMPARISONS)
PREFIXD_DEFINE_ENUM_(Strategy, PREFIXD_STRATEGIES)
PREFIXD_DEFINE_ENUM_(TileScan, PREFIXD_TILE_SCANS)
#undef PREFIXD_ALL_DTYPES_
// glue.h defines more in the same way.

enum class Selector : uint8_t { kPredicate, kByteMask, kBitMask };

inline constexpr int kNumDTypes = kNamesOf<DType>.size();
inline constexpr int kNumOps = kNamesOf<Op>.size();
inline constexpr int kNumComparisons = kNamesOf<Comparison>.size();
inline constexpr int kNumPrimitives = kNamesOf<Primitive>.size();
inline constexpr int kNumStrategies = kNamesOf<Strategy>.size();
inline constexpr int kNumTileScans = kNamesOf<TileScan>.size();

template <class Enum>
concept Named = !kNamesOf<Enum>.empty();

// Names as users type them: "f32", "sum", "chained", "<=". Empty for a value outside its enum.
template <Named Enum>
constexpr std::string_view Name(Enum value) {
  const auto i = static_cast<size_t>(value);
  return i < kNamesOf<Enum>.size() ? kNamesOf<Enum>[i] : std::string_view();
}

// The inverse of Name: true and *out set if `name` is one.
template <Named Enum>
constexpr bool FromName(std::string_view name, Enum* out) {
  for (size_t i = 0; i < kNamesOf<Enum>.size(); ++i) {
    if (kNamesOf<Enum>[i] != name) continue;
    *out = static_cast<Enum>(i);
    return true;
  }
  return false;
}

// Ends the process: `function` has no case for the value. What callers send is checked where it comes in, so only a
// mistake in this program leads here.
[[noreturn]] void FatalValue(std::string_view function, std::string_view name, int value);
template <class Enum>
[[noreturn]] void FatalValue(std::string_view function, Enum value) {
  if constexpr (Named<Enum>) {
    FatalValue(function, Name(value), static_cast<int>(value));
  } else {
    FatalValue(function, "", static_cast<int>(value));
  }
}

// ---- What is supported ---------------------------------------------------------------------------------------------
// The kind of a C++ type. <type_traits> knows no floats of 16 bits: std::is_floating_point is for the types that are
// computed with as they are.
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsNarrowFloat<T>;
template <class T>
inline constexpr bool kIsSignedInteger = std::is_integral_v<T>&& std::is_signed_v<T>;

struct DTypeTraits {
  size_t size_bytes;
  bool is_floating;
  bool is_signed_integer;
  bool is_narrow_float;
};
inline constexpr DTypeTraits kDTypeTraits[] = {
#define PREFIXD_TRAITS(enumerator, type) \
  {sizeof(type), kIsFloating<type>, kIsSignedInteger<type>, kIsNarrowFloat<type>},
    PREFIXD_FOR_EACH_DTYPE(PREFIXD_TRAITS)
#undef PREFIXD_TRAITS
};
constexpr const DTypeTraits& TraitsOf(DType dtype) {
  if (static_cast<int>(dtype) >= kNumDTypes) FatalValue("TraitsOf", dtype);
  return kDTypeTraits[static_cast<int>(dtype)];
}

// Bytes of one element.
constexpr size_t SizeOf(DType dtype) { return TraitsOf(dtype).size_bytes; }
constexpr bool IsFloating(DType dtype) { return TraitsOf(dtype).is_floating; }
constexpr bool IsSigned(DType dtype) { return TraitsOf(dtype).is_signed_integer; }

constexpr bool IsNarrowFloat(DType dtype) { return TraitsOf(dtype).is_narrow_float; }

// The type in which elements of an output type are combined: its own, but f32 for f16 and bf16, to which each result is
// rounded once.
constexpr DType AccumulatorOf(DType out_dtype) { return IsNarrowFloat(out_dtype) ? DType::kF32 : out_dtype; }

// False for a value outside the enum.
constexpr bool IsSupported(DType dtype) { return static_cast<int>(dtype) < kNumDTypes; }

// Whether scan and reduce of dtype serve the output type.
constexpr bool IsOutput(DType dtype, DType out_dtype) {
#define PREFIXD_TEST(name, type, out_name, out_type) \
  if (dtype == DType::name && out_dtype == DType::out_name) return true;
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_TEST)
#undef PREFIXD_TEST
  return false;
}
#define PREFIXD_TEST(name, type) \
  static_assert(IsOutput(DType::name, DType::name), "PREFIXD_FOR_EACH_OUTPUT lacks a type of PREFIXD_DTYPES");
PREFIXD_FOR_EACH_DTYPE(PREFIXD_TEST)
#undef PREFIXD_TEST

// The output types of dtype, for a message: "u8, u32, u64". Empty if dtype is not served.
std::string OutputNames(DType dtype);

// Whether the operator, one that callers know, has a meaning on the element type.
constexpr bool IsDefined(Op op, DType dtype) {
  if (op == Op::kWideSum) return false;
  if (op == Op::kLogAddExp) return IsFloating(dtype);
  return !((op == Op::kAnd || op == Op::kOr || op == Op::kXor) && IsFloating(dtype));
}

// Whether results depend on the order in which elements are combined: they round.
constexpr bool IsOrdered(DType out_dtype, Op op) {
  return IsFloating(out_dtype) &&
         (op == Op::kSum || op == Op::kProd || op == Op::kLinearRecurrence || op == Op::kLogAddExp);
}

// Whether the primitive combines elements by an operator. One that does not has no output type but dtype.
constexpr bool HasOp(Primitive primitive) {
  switch (primitive) {
#define PREFIXD_CASE(enumerator, name, has_op) \
  case Primitive::enumerator:                  \
    return has_op;
    PREFIXD_PRIMITIVES(PREFIXD_CASE)  // NOLINT(bugprone-branch-clone): the list says which of them are alike.
#undef PREFIXD_CASE
  }
  FatalValue("HasOp", primitive);
}

// Whether the primitive serves the combination, by an operator on elements alone. It counts only if HasOp(primitive).
constexpr bool IsSupported(Primitive primitive, DType dtype, DType out_dtype, Op op) {
  if (!HasOp(primitive)) return IsSupported(dtype) && out_dtype == dtype;
  return IsOutput(dtype, out_dtype) && op != Op::kLinearRecurrence && IsDefined(op, out_dtype);
}

// Whether the comparison is with something. The others look at the element alone.
constexpr bool HasValue(Comparison comparison) {
  return comparison != Comparison::kIsNan && comparison != Comparison::kIsFinite;
}

// Whether it is with the end of a range too: value <= element < end.
constexpr bool HasEnd(Comparison comparison) { return comparison == Comparison::kInRange; }

// Whether it may be between the elements of two arrays.
constexpr bool IsOfTwo(Comparison comparison) { return HasValue(comparison) && !HasEnd(comparison); }

// Whether it is a sum that is served in more precision than its type's.
constexpr bool IsWideSum(DType dtype, DType out_dtype, Op op) {
  return IsSupported(dtype) && IsFloating(dtype) && !IsNarrowFloat(dtype) && out_dtype == dtype && op == Op::kSum;
}

// Whether it is a linear recurrence that is served: a scan whose elements have coefficients beside them.
constexpr bool IsRecurrence(Primitive primitive, DType dtype, DType out_dtype, Op op) {
  return primitive == Primitive::kScan && op == Op::kLinearRecurrence && IsSupported(dtype) && IsFloating(dtype) &&
         !IsNarrowFloat(dtype) && out_dtype == dtype;
}

// In which precision a spec or arguments ask for it.
template <class Args>
constexpr Precision PrecisionOf(const Args& args) {
  if constexpr (requires { args.precision; }) return args.precision;
  return Precision::kNative;
}

// ---- From values to C++ types --------------------------------------------------------------------------------------
template <class T>
struct DTypeOfImpl;
#define PREFIXD_TRAIT(name, type)               \
  template <>                                   \
  struct DTypeOfImpl<type> {                    \
    static constexpr DType value = DType::name; \
  };
PREFIXD_FOR_EACH_DTYPE(PREFIXD_TRAIT)
#undef PREFIXD_TRAIT
// The dtype of a C++ type; does not compile for one that has none.
template <class T>
inline constexpr DType kDTypeOf = DTypeOfImpl<T>::value;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) for the C++ type of `dtype` and returns its result. Ends the process for a value outside the
// enum.
template <class F>
auto VisitDType(DType dtype, F&& f) {
  switch (dtype) {
#define PREFIXD_CASE(name, type) \
  case DType::name:              \
    return f(TypeTag<type>{});
    PREFIXD_FOR_EACH_DTYPE(PREFIXD_CASE)
#undef PREFIXD_CASE
    default:
      FatalValue("VisitDType", dtype);
  }
}

// The same for the type in which elements combine to out_dtype: AccumulatorOf.
template <class F>
auto VisitAccumulator(DType out_dtype, F&& f) {
  return VisitDType(out_dtype, [&](auto tag) { return f(TypeTag<Accumulator<typename decltype(tag)::type>>{}); });
}

// Calls f(TypeTag<In>{}, TypeTag<Out>{}) for the C++ types of both and returns its result. Ends the process unless
// IsOutput(dtype, out_dtype).
template <class F>
auto VisitOutput(DType dtype, DType out_dtype, F&& f) {
#define PREFIXD_CASE(name, type, out_name, out_type) \
  if (dtype == DType::name && out_dtype == DType::out_name) return f(TypeTag<type>{}, TypeTag<out_type>{});
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_CASE)
#undef PREFIXD_CASE
  if (!IsSupported(dtype)) FatalValue("VisitOutput", dtype);
  FatalValue("VisitOutput from " + std::string(Name(dtype)), out_dtype);
}

template <Op kOp>
struct OpTag {
  static constexpr Op kValue = kOp;
};

// Calls f(OpTag<op>{}) for an operator that scan and reduce serve on T, and returns its result. Ends the process for
// another.
template <class T, class F>
auto VisitOp(Op op, F&& f) {
  switch (op) {
#define PREFIXD_CASE(enumerator, name)                                                       \
  case Op::enumerator:                                                                       \
    if constexpr (IsSupported(Primitive::kScan, kDTypeOf<T>, kDTypeOf<T>, Op::enumerator)) { \
      return f(OpTag<Op::enumerator>{});                                                     \
    } else {                                                                                 \
      break;                                                                                 \
    }
    PREFIXD_OPS(PREFIXD_CASE)
#undef PREFIXD_CASE
    case Op::kWideSum:
      break;
  }
  FatalValue("VisitOp", op);
}

// ---- Values --------------------------------------------------------------------------------------------------------
// One element of any dtype: its bytes at the front, zeros behind.
struct Value {
  uint64_t bits = 0;

  template <class T>
  static Value Of(T v) {
    Value value;
    std::memcpy(&value.bits, &v, sizeof(T));
    return value;
  }
  template <class T>
  T As() const {
    T v;
    std::memcpy(&v, &bits, sizeof(T));
    return v;
  }
  friend bool operator==(Value a, Value b) { return a.bits == b.bits; }
};

// What an exclusive scan starts with, and what reducing nothing returns: 0 for sums (+0.0 for floats), or and xor; 1
// for products; for min the largest value, for max and log_add_exp the smallest; all bits set for and. A recurrence
// begins as a sum does. Ends the process unless IsSupported, or IsRecurrence, of (kScan, dtype, dtype, op).
Value Identity(Op op, DType dtype);

// A value v with op(v, x) == x for every x, bit for bit: Identity, but -0.0 for floating-point sums. It stands in front
// of the first element if the caller gave no init, and it fills a partial tile.
Value Neutral(Op op, DType dtype);

// A value of the output type, in the type in which elements combine: AccumulatorOf.
Value ToAccumulator(Value value, DType out_dtype);

// The value that a scan starts from if the caller gave no init: Identity if exclusive, Neutral if inclusive.
inline Value ScanStart(Op op, DType dtype, ScanKind kind) {
  return kind == ScanKind::kExclusive ? Identity(op, dtype) : Neutral(op, dtype);
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_TYPES_H_
