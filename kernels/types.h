// The words of the domain: element types, operators, algorithms, and the one list of what is supported.
// Plain C++; knows nothing of CUDA or of the wire. Everything here is a value: no threads, no ownership.
#ifndef PREFIXD_KERNELS_TYPES_H_
#define PREFIXD_KERNELS_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace prefixd {

// Bits of a result depend on data, spec and this number alone: NUMERICS.md.
inline constexpr uint32_t kNumericsVersion = 1;

enum class DType : uint8_t { kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kBF16, kF32, kF64 };
enum class Op : uint8_t { kSum, kProd, kMin, kMax, kAnd, kOr, kXor, kLinearRecurrence };
enum class ScanKind : uint8_t { kInclusive, kExclusive };
enum class Primitive : uint8_t { kScan, kReduce, kCompact };
enum class Selector : uint8_t { kPredicate, kByteMask, kBitMask };
enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual, kIsNan, kIsFinite };
enum class Strategy : uint8_t {
  kDefault,
  kChained,
  kSingleLaunch,
  kReduceThenScan,
  kSequential,
  kNaive,
  kHillisSteeleGlobal,
  kThreePhase,
  kGridSync,
  kChainedSerial,
  kCub,
  kThrust,
  kTreeInterleaved,
  kTreeSequential,
  kWarpShuffle,
  kTwoPass,
  kAtomic,
  kKahan,
  kThreeKernel,
  kAtomicCounter,
};
// How one block scans its tile.
enum class TileScan : uint8_t {
  kDefault,
  kHillisSteele,
  kKoggeStone,
  kBrentKung,
  kBlelloch,
  kWarpShared,
  kWarpShuffle,
  kWarpSharedRegister,
};

inline constexpr int kNumDTypes = 12;
inline constexpr int kNumOps = 8;
inline constexpr int kNumPrimitives = 3;
inline constexpr int kNumStrategies = 20;
inline constexpr int kNumTileScans = 8;

// Which algorithm: how tiles are joined, how one is scanned, and the knobs of that. Defaults: the device chooses.
// What goes with what: CheckAlgorithm in device.h.
struct Algorithm {
  Strategy strategy = Strategy::kDefault;
  TileScan tile_scan = TileScan::kDefault;  // Where TakesTileScan, of scans.
  uint8_t items_per_thread = 0;             // Where TakesItemsPerThread: a power of two up to kMaxItemsPerThread.
  bool padding = false;                     // Where TakesPadding: one word every 32, so that no two banks collide.

  friend bool operator==(const Algorithm&, const Algorithm&) = default;
};

inline constexpr int kMaxItemsPerThread = 16;
// kChained itself, without a tile scan, is another kernel: the fast one.
constexpr bool TakesTileScan(Strategy strategy) {
  return strategy == Strategy::kThreePhase || strategy == Strategy::kGridSync || strategy == Strategy::kChainedSerial ||
         strategy == Strategy::kChained;
}
constexpr bool TakesItemsPerThread(TileScan tile_scan) { return tile_scan == TileScan::kBrentKung; }
constexpr bool TakesPadding(TileScan tile_scan) {
  return tile_scan == TileScan::kBrentKung || tile_scan == TileScan::kBlelloch;
}

// Names as users type them: "f32", "sum", "chained". Empty for a value outside its enum.
std::string_view Name(DType dtype);
std::string_view Name(Op op);
std::string_view Name(ScanKind kind);
std::string_view Name(Primitive primitive);
std::string_view Name(Comparison comparison);  // "<", "<=", ">", ">=", "==", "!=", "is-nan", "is-finite"
std::string_view Name(Strategy strategy);
std::string_view Name(TileScan tile_scan);
// What was chosen, parted by slashes: "chained", "three_phase/brent_kung", "three_phase/brent_kung/4/padded".
std::string Name(const Algorithm& algorithm);

// The inverses of Name: true and *out set if `name` is one.
bool FromName(std::string_view name, DType* out);
bool FromName(std::string_view name, Op* out);
bool FromName(std::string_view name, ScanKind* out);
bool FromName(std::string_view name, Primitive* out);
bool FromName(std::string_view name, Comparison* out);
bool FromName(std::string_view name, Strategy* out);
bool FromName(std::string_view name, TileScan* out);
bool FromName(std::string_view name, Algorithm* out);  // Also of what CheckAlgorithm refuses.

// Bytes of one element.
constexpr size_t SizeOf(DType dtype) {
  constexpr size_t kSizes[kNumDTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}
constexpr bool IsFloating(DType dtype) { return dtype >= DType::kF16; }
constexpr bool IsSigned(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
}

// ---- The one list of what is supported ----------------------------------------------------------------------------
// X(enumerator, C++ type) for every dtype that the kernels serve. Dispatch, validation, GetServerInfo and the
// conformance suite all come from here, from the list of outputs below, and from IsSupported.
#define PREFIXD_FOR_EACH_DTYPE(X) \
  X(kI8, int8_t)                  \
  X(kU8, uint8_t)                 \
  X(kI16, int16_t)                \
  X(kU16, uint16_t)               \
  X(kI32, int32_t)                \
  X(kU32, uint32_t)               \
  X(kI64, int64_t)                \
  X(kU64, uint64_t)               \
  X(kF32, float)                  \
  X(kF64, double)

// X(enumerator, C++ type, enumerator and C++ type of the output) for every output type of every dtype, in which scan
// and reduce convert the elements, combine them and return the result. The dtype itself comes first.
#define PREFIXD_FOR_EACH_OUTPUT(X)  \
  X(kI8, int8_t, kI8, int8_t)       \
  X(kI8, int8_t, kI32, int32_t)     \
  X(kI8, int8_t, kI64, int64_t)     \
  X(kU8, uint8_t, kU8, uint8_t)     \
  X(kU8, uint8_t, kU32, uint32_t)   \
  X(kU8, uint8_t, kU64, uint64_t)   \
  X(kI16, int16_t, kI16, int16_t)   \
  X(kI16, int16_t, kI32, int32_t)   \
  X(kI16, int16_t, kI64, int64_t)   \
  X(kU16, uint16_t, kU16, uint16_t) \
  X(kU16, uint16_t, kU32, uint32_t) \
  X(kU16, uint16_t, kU64, uint64_t) \
  X(kI32, int32_t, kI32, int32_t)   \
  X(kI32, int32_t, kI64, int64_t)   \
  X(kU32, uint32_t, kU32, uint32_t) \
  X(kU32, uint32_t, kU64, uint64_t) \
  X(kI64, int64_t, kI64, int64_t)   \
  X(kU64, uint64_t, kU64, uint64_t) \
  X(kF32, float, kF32, float)       \
  X(kF32, float, kF64, double)      \
  X(kF64, double, kF64, double)

constexpr bool IsSupported(DType dtype) {
  switch (dtype) {
#define PREFIXD_CASE(name, type) case DType::name:
    PREFIXD_FOR_EACH_DTYPE(PREFIXD_CASE)
#undef PREFIXD_CASE
    return true;
    default:
      return false;
  }
}

// Whether scan and reduce of dtype serve the output type.
constexpr bool IsOutput(DType dtype, DType out_dtype) {
#define PREFIXD_TEST(name, type, out_name, out_type) \
  if (dtype == DType::name && out_dtype == DType::out_name) return true;
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_TEST)
#undef PREFIXD_TEST
  return false;
}

// The output types of dtype, for a message: "u8, u32, u64". Empty if dtype is not served.
std::string OutputNames(DType dtype);

// Whether the operator has a meaning on the element type, served or not.
constexpr bool IsDefined(Op op, DType dtype) {
  return !((op == Op::kAnd || op == Op::kOr || op == Op::kXor) && IsFloating(dtype));
}

// Whether the primitive serves the combination. Compact has no operator, and no output type but dtype.
constexpr bool IsSupported(Primitive primitive, DType dtype, DType out_dtype, Op op) {
  if (primitive == Primitive::kCompact) return IsSupported(dtype) && out_dtype == dtype;
  return IsOutput(dtype, out_dtype) && op != Op::kLinearRecurrence && IsDefined(op, out_dtype);
}

// Whether its bits are those of NUMERICS.md. Those of the rest are for integers, min and max, where every order gives
// them.
constexpr bool FollowsNumerics(const Algorithm& algorithm) {
  switch (algorithm.strategy) {
    case Strategy::kChained:
      return algorithm.tile_scan == TileScan::kDefault;
    case Strategy::kDefault:
    case Strategy::kSingleLaunch:
    case Strategy::kReduceThenScan:
      return true;
    default:
      return false;
  }
}

// Whether the algorithm, where a device has it, serves the combination too. Needs IsSupported of the same.
// The defaults and sequential serve everything. The rest are there to compare with: cub of scan and reduce sums, and
// the other operators where elements of 4 or 8 bytes come out as they went in; kahan sums of floats to the same type;
// the textbooks' algorithms elements of 4 or 8 bytes, sum, min and max, to the same type.
constexpr bool IsServedBy(const Algorithm& algorithm, Primitive primitive, DType dtype, DType out_dtype, Op op) {
  const bool compares = dtype == out_dtype && SizeOf(dtype) >= 4;
  if (FollowsNumerics(algorithm) || algorithm.strategy == Strategy::kSequential) return true;
  if (algorithm.strategy == Strategy::kCub) return primitive == Primitive::kCompact || op == Op::kSum || compares;
  if (algorithm.strategy == Strategy::kKahan) return compares && IsFloating(dtype) && op == Op::kSum;
  return compares && (primitive == Primitive::kCompact || op == Op::kSum || op == Op::kMin || op == Op::kMax);
}

template <class T>
struct DTypeOfImpl;
#define PREFIXD_TRAIT(name, type)               \
  template <>                                   \
  struct DTypeOfImpl<type> {                    \
    static constexpr DType value = DType::name; \
  };
PREFIXD_FOR_EACH_DTYPE(PREFIXD_TRAIT)
#undef PREFIXD_TRAIT
// The dtype of a C++ type; does not compile for one that is not served.
template <class T>
inline constexpr DType kDTypeOf = DTypeOfImpl<T>::value;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) for the C++ type of `dtype` and returns its result. Needs IsSupported(dtype).
template <class F>
auto VisitDType(DType dtype, F&& f) {
  switch (dtype) {
#define PREFIXD_CASE(name, type) \
  case DType::name:              \
    return f(TypeTag<type>{});
    PREFIXD_FOR_EACH_DTYPE(PREFIXD_CASE)
#undef PREFIXD_CASE
    default:
      return f(TypeTag<int32_t>{});
  }
}

// Calls f(TypeTag<In>{}, TypeTag<Out>{}) for the C++ types of both and returns its result. Needs IsOutput.
template <class F>
auto VisitOutput(DType dtype, DType out_dtype, F&& f) {
#define PREFIXD_CASE(name, type, out_name, out_type) \
  if (dtype == DType::name && out_dtype == DType::out_name) return f(TypeTag<type>{}, TypeTag<out_type>{});
  PREFIXD_FOR_EACH_OUTPUT(PREFIXD_CASE)
#undef PREFIXD_CASE
  return f(TypeTag<int32_t>{}, TypeTag<int32_t>{});
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

// What an exclusive scan starts with, and what reducing nothing returns: 0, 1, the largest, the smallest, ~0, 0, 0.
// For floating-point sums it is +0.0. Needs IsSupported(kScan, dtype, dtype, op).
Value Identity(Op op, DType dtype);

// A value v with op(v, x) == x for every x, bit for bit: Identity, but -0.0 for floating-point sums. What stands in
// front of the first element where the caller gave no init, and what fills a partial tile.
Value Neutral(Op op, DType dtype);

// What a scan starts from: the caller's init if there is one; else Identity if exclusive, Neutral if inclusive.
inline Value ScanStart(Op op, DType dtype, ScanKind kind) {
  return kind == ScanKind::kExclusive ? Identity(op, dtype) : Neutral(op, dtype);
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_TYPES_H_
