// What a lane can be asked to do: a primitive, or the glue between them. spec.h has the primitives; here are the specs
// of the glue, whose arithmetic is in NUMERICS.md, and the list of all.
//
//   Operation operation = FillSpec{.dtype = DType::kU64, .kind = FillKind::kIota, .step = Value::Of<uint64_t>(1)};
//   OutputOf(operation) == DType::kU64 && OperationName(operation) == "fill"
//
// Everything here is a value: no threads, no ownership.
#ifndef PREFIXD_KERNELS_OPERATION_H_
#define PREFIXD_KERNELS_OPERATION_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "kernels/glue.h"
#include "kernels/spec.h"

namespace prefixd {

// Items that their index alone defines: FillArgs.
struct FillSpec {
  static constexpr std::string_view kName = "fill";

  DType dtype = DType::kI32;
  FillKind kind = FillKind::kConstant;
  Value value = {};    // kConstant, kIota.
  Value step = {};     // kIota.
  uint64_t seed = 0;   // kRandom.
  uint64_t first = 0;  // kRandom: the index of the first item in the stream of random ones.

  DType output() const { return dtype; }
  friend bool operator==(const FillSpec&, const FillSpec&) = default;
};

// out[i] = in[i]
struct CopySpec {
  static constexpr std::string_view kName = "copy";

  DType dtype = DType::kI32;
  std::optional<uint64_t> num_items = {};  // As in ScanSpec.

  DType output() const { return dtype; }
  friend bool operator==(const CopySpec&, const CopySpec&) = default;
};

// The same operator on every item of one array, or of two: MapArgs.
struct MapSpec {
  MapOp op = MapOp::kCast;
  DType dtype = DType::kI32;
  DType cast_dtype = DType::kI32;             // kCast.
  Comparison comparison = Comparison::kLess;  // kCompare, kCompareArrays.
  Value a = {};                               // kAffine, kCompare.
  Value b = {};                               // kAffine.

  DType output() const { return MapOutput(op, dtype, cast_dtype); }
  friend bool operator==(const MapSpec&, const MapSpec&) = default;
};

// out[i] = in[indices[i]]: GatherArgs.
struct GatherSpec {
  static constexpr std::string_view kName = "gather";

  DType dtype = DType::kI32;
  DType index_dtype = DType::kU64;  // kU64 or kU32.

  DType output() const { return dtype; }
  friend bool operator==(const GatherSpec&, const GatherSpec&) = default;
};

// out[indices[i]] = in[i]: ScatterArgs.
struct ScatterSpec {
  static constexpr std::string_view kName = "scatter";

  DType dtype = DType::kI32;
  DType index_dtype = DType::kU64;  // kU64 or kU32.

  DType output() const { return dtype; }
  friend bool operator==(const ScatterSpec&, const ScatterSpec&) = default;
};

// out[c][r] = in[r][c]: TransposeArgs.
struct TransposeSpec {
  static constexpr std::string_view kName = "transpose";

  DType dtype = DType::kI32;
  uint64_t num_rows = 0;  // As in has them.
  uint64_t num_columns = 0;

  DType output() const { return dtype; }
  friend bool operator==(const TransposeSpec&, const TransposeSpec&) = default;
};

// The primitives come first, in the order of Spec.
using Operation = std::variant<ScanSpec, ReduceSpec, CompactSpec, DifferenceSpec, FillSpec, CopySpec, MapSpec,
                               GatherSpec, ScatterSpec, TransposeSpec>;

// What users call it: "scan", "fill", "add".
inline std::string_view OperationName(const Operation& operation) {
  return std::visit(
      [](const auto& spec) {
        if constexpr (requires { spec.kPrimitive; }) {
          return Name(spec.kPrimitive);
        } else if constexpr (requires { spec.kName; }) {
          return spec.kName;
        } else {
          return Name(spec.op);
        }
      },
      operation);
}

inline Operation OperationOf(const Spec& spec) {
  return std::visit([](const auto& one) { return Operation(one); }, spec);
}
// Nothing for the glue.
inline std::optional<Spec> SpecOf(const Operation& operation) {
  return std::visit(
      [](const auto& one) -> std::optional<Spec> {
        if constexpr (requires { Spec(one); }) return Spec(one);
        return std::nullopt;
      },
      operation);
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_OPERATION_H_
