// Specs: what an operation is asked to do, described once for kernels, server and client. The arrays come beside the
// spec: as device pointers (device.h), as messages (proto/), or as spans (client/).
//
//   Spec spec = ScanSpec{.dtype = DType::kF32, .op = Op::kMax};
//   PrimitiveOf(spec) == Primitive::kScan && OutputOf(spec) == DType::kF32
//
// Everything here is a value: no threads, no ownership.
#ifndef PREFIXD_KERNELS_SPEC_H_
#define PREFIXD_KERNELS_SPEC_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "kernels/algorithm.h"
#include "kernels/types.h"

namespace prefixd {

// The axis of a matrix along which an operation works: each of its columns, or rows, is an array of its own. The rows
// stand one behind the other.
struct Axis {
  enum class Along : uint8_t { kColumn, kRow };  // NumPy's axis 0, and 1.

  Along along = Along::kRow;
  uint64_t row_items = 0;  // Elements in a row.

  // For a matrix of num_items elements. Needs: CheckAxis(*this, num_items) is OK.
  uint64_t ItemsOfArray(uint64_t num_items) const { return along == Along::kRow ? row_items : num_items / row_items; }
  uint64_t NumArrays(uint64_t num_items) const { return along == Along::kRow ? num_items / row_items : row_items; }

  friend bool operator==(const Axis&, const Axis&) = default;
};

// Whether so many elements are whole rows.
// Errors: INVALID_ARGUMENT (SHAPE) for rows of no elements, or rows that are not whole.
absl::Status CheckRows(const Axis& axis, uint64_t num_items);

// Whether so many elements are a matrix that one launch works on.
// Errors: those of CheckRows; INVALID_ARGUMENT (SHAPE) for more rows, or columns, than a launch takes: 2^31 - 1.
absl::Status CheckAxis(const Axis& axis, uint64_t num_items);

// out[i] = init op in[0] op ... op in[i] (inclusive), or to in[i-1] (exclusive).
struct ScanSpec {
  static constexpr Primitive kPrimitive = Primitive::kScan;

  DType dtype = DType::kF32;
  std::optional<DType> out_dtype = {};  // The type of out and init, in which elements combine (IsOutput). None: dtype.
  Op op = Op::kSum;
  Precision precision = Precision::kNative;  // kWide: IsWideSum. init is of the output type, whatever it is made in.
  ScanKind kind = ScanKind::kInclusive;
  std::optional<Value> init = {};          // Absent: the operator's identity.
  bool reverse = false;                    // From the last element to the first. Not in a stream.
  Algorithm algorithm = {};                // {}: the device chooses.
  std::optional<uint64_t> num_items = {};  // The whole array's length, where it is known; the server checks it.
  std::optional<Axis> axis = {};           // Absent: all elements are one array. In a stream: rows only.
  bool segmented = false;  // Offsets of segments come beside the elements, each an array. Without an axis or a stream.
  // Keys of this type come in place of the offsets, one beside each element: a segment ends where they change.
  std::optional<DType> key_dtype = {};
  // A linear recurrence's: each element's comes beside it, or there is one for all.
  bool has_coefficients = false;
  std::optional<Value> coefficient = {};
  // One result more: those of the exclusive scan, and its carry behind them, whatever the kind; in front of them in a
  // reverse scan. Without an axis, segments or carries.
  bool include_initial = false;
  // Also the index of each extremum, of an inclusive scan by min or max to the elements' type without an initial value:
  // along an axis in its row or column, else in the whole array. Of equal elements that of the first; or of the last.
  bool return_indices = false;
  DType index_dtype = DType::kU64;  // kU64 or kU32.
  bool last_index = false;

  DType output() const { return out_dtype.value_or(dtype); }
  friend bool operator==(const ScanSpec&, const ScanSpec&) = default;
};

// Whether what the spec asks for goes together: a linear recurrence has coefficients, and nothing else has; an initial
// value stands in front of one array; the precision is native, or that of a wide sum; extrema have indices.
// Errors: INVALID_ARGUMENT (FIELD_CONFLICT, UNSUPPORTED_COMBINATION).
absl::Status CheckScan(const ScanSpec& spec);

// value = init op in[0] op ... op in[n-1]; along an axis, such a value for each column or row.
struct ReduceSpec {
  static constexpr Primitive kPrimitive = Primitive::kReduce;

  DType dtype = DType::kF32;
  std::optional<DType> out_dtype = {};  // The type of value and init, as in ScanSpec. None: dtype.
  Op op = Op::kSum;
  Precision precision = Precision::kNative;  // As in ScanSpec.
  std::optional<Value> init = {};
  Algorithm algorithm = {};
  std::optional<uint64_t> num_items = {};
  std::optional<Axis> axis = {};  // As in ScanSpec. There are no values of columns without rows.
  bool segmented = false;  // Offsets of segments come beside the elements, and each has a value. Without an axis.
  std::optional<DType> key_dtype = {};  // As in ScanSpec.
  bool return_keys = false;             // Also the key of each run of equal ones.

  DType output() const { return out_dtype.value_or(dtype); }
  friend bool operator==(const ReduceSpec&, const ReduceSpec&) = default;
};

// Errors: as CheckScan, of the precision.
absl::Status CheckReduce(const ReduceSpec& spec);

// What the two have in common.
absl::Status CheckPrecision(Precision precision, DType dtype, DType out_dtype, Op op);

// `element comparison value`, by IEEE rules.
struct Predicate {
  Comparison comparison = Comparison::kGreater;
  Value value = {};  // If HasValue.
  Value end = {};    // If HasEnd.

  friend bool operator==(const Predicate&, const Predicate&) = default;
};

// Errors: INVALID_ARGUMENT (FIELD_CONFLICT), of field's value or end, where a comparison has not what it is with, or
// more.
absl::Status CheckComparison(Comparison comparison, bool has_value, bool has_end, std::string_view field);

// How a mask is packed. kBytes: a byte an element, which is kept if its byte is not 0. kBits: a bit an element, the
// lowest bit first; each chunk begins with a new byte, and the spare bits of its last byte are ignored.
enum class MaskKind : uint8_t { kBytes, kBits };

// The number of bytes in a mask for num_items elements.
constexpr uint64_t MaskBytes(MaskKind kind, uint64_t num_items) {
  return kind == MaskKind::kBits ? num_items / 8 + (num_items % 8 != 0) : num_items;
}

// Keeps the elements for which the predicate or the mask holds, in their order.
struct CompactSpec {
  static constexpr Primitive kPrimitive = Primitive::kCompact;

  DType dtype = DType::kF32;
  std::optional<Predicate> predicate = {};  // Absent: each chunk comes with a mask.
  MaskKind mask_kind = MaskKind::kBytes;
  bool invert = false;              // Keeps the other elements instead.
  bool return_values = true;        // The kept elements.
  bool return_indices = false;      // Also the index of each kept element in the whole array.
  DType index_dtype = DType::kU64;  // kU64 or kU32.
  Algorithm algorithm = {};
  std::optional<uint64_t> num_items = {};
  bool segmented = false;  // Offsets of segments come beside the elements, and how many of each are kept is counted.
  std::optional<DType> key_dtype = {};  // As in ScanSpec.

  DType output() const { return dtype; }
  // The indices' by which a segmented compact counts its segments, whether or not they are returned.
  DType KeptIndexDType() const { return return_indices ? index_dtype : DType::kU64; }
  friend bool operator==(const CompactSpec&, const CompactSpec&) = default;
};

// out[0] = in[0] - init, out[i] = in[i] - in[i-1]; reversed: out[n-1] = in[n-1] - init, out[i] = in[i] - in[i+1].
// This undoes an inclusive scan by sum.
struct DifferenceSpec {
  static constexpr Primitive kPrimitive = Primitive::kDifference;

  DType dtype = DType::kF32;
  std::optional<Value> init = {};  // Absent: 0.
  bool reverse = false;            // Not in a stream.
  Algorithm algorithm = {};
  std::optional<uint64_t> num_items = {};
  std::optional<Axis> axis = {};        // As in ScanSpec.
  bool segmented = false;               // As in ScanSpec.
  std::optional<DType> key_dtype = {};  // As in ScanSpec.

  DType output() const { return dtype; }
  friend bool operator==(const DifferenceSpec&, const DifferenceSpec&) = default;
};

// The spec of any primitive. A primitive's place in this list is its number.
using Spec = std::variant<ScanSpec, ReduceSpec, CompactSpec, DifferenceSpec>;

inline Primitive PrimitiveOf(const Spec& spec) { return static_cast<Primitive>(spec.index()); }
// These of any variant of specs, as Operation (operation.h) is another.
template <class... S>
DType InputOf(const std::variant<S...>& spec) {
  return std::visit([](const auto& s) { return s.dtype; }, spec);
}
template <class... S>
DType OutputOf(const std::variant<S...>& spec) {
  return std::visit([](const auto& s) { return s.output(); }, spec);
}
// {} where nobody chooses it.
template <class... S>
Algorithm AlgorithmOf(const std::variant<S...>& spec) {
  return std::visit(
      [](const auto& s) -> Algorithm {
        if constexpr (requires { s.algorithm; }) return s.algorithm;
        return {};
      },
      spec);
}
// The length that was declared.
template <class... S>
std::optional<uint64_t> NumItemsOf(const std::variant<S...>& spec) {
  return std::visit(
      [](const auto& s) -> std::optional<uint64_t> {
        if constexpr (requires { s.num_items; }) return s.num_items;
        return std::nullopt;
      },
      spec);
}
// The axis along which it works.
template <class... S>
std::optional<Axis> AxisOf(const std::variant<S...>& spec) {
  return std::visit(
      [](const auto& s) -> std::optional<Axis> {
        if constexpr (requires { s.axis; }) return s.axis;
        return std::nullopt;
      },
      spec);
}
// The operator; nullopt where the primitive has none.
template <class S>
std::optional<Op> OpOfOne(const S& spec) {
  if constexpr (requires { std::optional<Op>(spec.op); }) return spec.op;
  return std::nullopt;
}
template <class... S>
std::optional<Op> OpOf(const std::variant<S...>& spec) {
  return std::visit([](const auto& s) { return OpOfOne(s); }, spec);
}

// Checks that it is a power of two up to kMaxItemsPerThread, or 0: the device chooses. field: the name of its field.
// Errors: INVALID_ARGUMENT (ALGORITHM_CHOICE).
absl::Status CheckItemsPerThread(uint64_t items_per_thread, std::string_view field);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_SPEC_H_
