// What the specs of several primitives have in common on the wire. Each primitive's own file (wire_scan.cc and so on)
// makes its FromWire and ToWire of these. A FromWire returns the first fault that it meets, so the order of its calls
// decides what a caller hears of a spec with several.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_SPEC_H_
#define PREFIXD_PROTO_WIRE_SPEC_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "kernels/spec.h"
#include "prefixd/v1/types.pb.h"
#include "proto/wire_values.h"

namespace prefixd {

// UNIMPLEMENTED (NOT_IMPLEMENTED): the contract has it and this server does not.
absl::Status NotImplemented(std::string_view field, std::string_view what);

// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM).
absl::StatusOr<DType> DecodeDType(int value, std::string_view field = "spec.dtype");
// The output type, if one is asked for.
// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, UNSUPPORTED_COMBINATION).
absl::StatusOr<std::optional<DType>> DecodeOutDType(int value, DType dtype);
// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, UNSUPPORTED_COMBINATION), UNIMPLEMENTED (NOT_IMPLEMENTED).
absl::StatusOr<Op> DecodeOp(int value, Primitive primitive, DType dtype, DType out_dtype);
// UNSPECIFIED is native.
// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM).
absl::StatusOr<Precision> DecodePrecision(int value);
// UNSPECIFIED is U64.
// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, UNSUPPORTED_COMBINATION).
absl::StatusOr<DType> DecodeIndexDType(int value);
// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) for a value of a type outside the enum.
absl::Status EncodeValue(Value value, DType dtype, v1::Scalar* scalar);

// axis and row_items.
// Errors: INVALID_ARGUMENT (SHAPE).
absl::StatusOr<Axis> DecodeAxis(std::optional<uint32_t> number, std::optional<uint64_t> row_items);
template <class WireSpec>
absl::StatusOr<Axis> DecodeAxis(const WireSpec& wire) {
  return DecodeAxis(wire.has_axis() ? std::optional(wire.axis()) : std::nullopt,
                    wire.has_row_items() ? std::optional(wire.row_items()) : std::nullopt);
}

// dtype, algorithm, num_items; the axis and the keys' type, if there is one.
template <class WireSpec, class Spec>
absl::Status DecodeCommon(const WireSpec& wire, Spec* spec) {
  PREFIXD_ASSIGN_OR_RETURN(spec->dtype, DecodeDType(wire.dtype()));
  PREFIXD_ASSIGN_OR_RETURN(spec->algorithm, DecodeAlgorithm(wire.algorithm(), "spec.algorithm"));
  if (wire.has_num_items()) spec->num_items = wire.num_items();
  if constexpr (requires { spec->axis; }) {
    if (wire.has_axis() || wire.has_row_items()) {
      PREFIXD_ASSIGN_OR_RETURN(spec->axis, DecodeAxis(wire));
    }
  }
  if constexpr (requires { spec->key_dtype; }) {
    if (wire.key_dtype() != v1::DTYPE_UNSPECIFIED) {
      PREFIXD_ASSIGN_OR_RETURN(spec->key_dtype, DecodeDType(wire.key_dtype(), "spec.key_dtype"));
    }
  }
  return absl::OkStatus();
}

template <class Spec, class WireSpec>
void EncodeCommon(const Spec& spec, WireSpec* wire) {
  wire->set_dtype(EncodeEnum<v1::DType>(spec.dtype));
  if (spec.algorithm != Algorithm{}) EncodeAlgorithm(spec.algorithm, wire->mutable_algorithm());
  if (spec.num_items) wire->set_num_items(*spec.num_items);
  if constexpr (requires { spec.key_dtype; }) {
    if (spec.key_dtype) wire->set_key_dtype(EncodeEnum<v1::DType>(*spec.key_dtype));
  }
  if constexpr (requires { spec.axis; }) {
    if (!spec.axis) return;
    wire->set_axis(static_cast<uint32_t>(spec.axis->along));
    wire->set_row_items(spec.axis->row_items);
  }
}

// out_dtype and op, which every spec has that combines elements. Needs: dtype is decoded.
template <class WireSpec, class Spec>
absl::Status DecodeOperator(const WireSpec& wire, Spec* spec) {
  PREFIXD_ASSIGN_OR_RETURN(spec->out_dtype, DecodeOutDType(wire.out_dtype(), spec->dtype));
  PREFIXD_ASSIGN_OR_RETURN(spec->op, DecodeOp(wire.op(), Spec::kPrimitive, spec->dtype, spec->output()));
  return absl::OkStatus();
}

template <class Spec, class WireSpec>
void EncodeOperator(const Spec& spec, WireSpec* wire) {
  if (spec.out_dtype) wire->set_out_dtype(EncodeEnum<v1::DType>(*spec.out_dtype));
  wire->set_op(EncodeEnum<v1::Op>(spec.op));
}

// init, a value of the output type. Needs: dtype and out_dtype are decoded.
template <class WireSpec, class Spec>
absl::Status DecodeInit(const WireSpec& wire, Spec* spec) {
  if (!wire.has_init()) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(spec->init, DecodeScalar(wire.init(), spec->output(), "spec.init"));
  return absl::OkStatus();
}

template <class Spec, class WireSpec>
absl::Status EncodeInit(const Spec& spec, WireSpec* wire) {
  return spec.init ? EncodeValue(*spec.init, spec.output(), wire->mutable_init()) : absl::OkStatus();
}

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_SPEC_H_
