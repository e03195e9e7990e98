#include "proto/wire_spec.h"

namespace prefixd {

absl::Status NotImplemented(std::string_view field, std::string_view what) {
  return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", field,
               StrCat(what, " is not implemented by this server: GetServerInfo lists what is"));
}

absl::StatusOr<DType> DecodeDType(int value, std::string_view field) { return DecodeEnum<DType>(value, field); }

absl::StatusOr<std::optional<DType>> DecodeOutDType(int value, DType dtype) {
  if (value == v1::DTYPE_UNSPECIFIED) return std::nullopt;
  PREFIXD_ASSIGN_OR_RETURN(const DType out_dtype, DecodeEnum<DType>(value, "spec.out_dtype"));
  if (IsOutput(dtype, out_dtype)) return out_dtype;
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.out_dtype",
               StrCat(Name(dtype), " has no output type ", Name(out_dtype), ": use one of ", OutputNames(dtype)));
}

absl::StatusOr<Op> DecodeOp(int value, Primitive primitive, DType dtype, DType out_dtype) {
  PREFIXD_ASSIGN_OR_RETURN(const Op op, DecodeEnum<Op>(value, "spec.op"));
  if (!IsDefined(op, out_dtype)) {
    return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.op",
                 StrCat(Name(op), " is not defined on ", Name(out_dtype), ": use ",
                        op == Op::kLogAddExp ? "a floating-point dtype" : "an integer dtype"));
  }
  if (IsRecurrence(primitive, dtype, out_dtype, op)) return op;
  if (op == Op::kLinearRecurrence) {
    return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.op",
                 StrCat("linear_recurrence is an operator of scans of f32 and f64 into the same type, not of a ",
                        Name(primitive), " of ", Name(dtype), " into ", Name(out_dtype), ": use another, or a cast"));
  }
  if (!IsSupported(primitive, dtype, out_dtype, op)) {
    return NotImplemented("spec.op", StrCat(Name(primitive), " with ", Name(op), " of ", Name(dtype)));
  }
  return op;
}

absl::StatusOr<Axis> DecodeAxis(std::optional<uint32_t> number, std::optional<uint64_t> row_items) {
  if (!number) {
    return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "spec.axis",
                 "there are row_items and no axis: say 0 for each column, or 1 for each row");
  }
  if (*number > 1) {
    return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "spec.axis",
                 StrCat("a matrix has no axis ", *number, ": say 0 for each column, or 1 for each row"));
  }
  if (!row_items) {
    return Error(absl::StatusCode::kInvalidArgument, "SHAPE", "spec.row_items",
                 "an axis is that of a matrix: say how many elements a row has");
  }
  const Axis axis = {.along = static_cast<Axis::Along>(*number), .row_items = *row_items};
  PREFIXD_RETURN_IF_ERROR(CheckAxis(axis, 0));
  return axis;
}

absl::StatusOr<DType> DecodeIndexDType(int value) {
  if (value == v1::DTYPE_UNSPECIFIED) return DType::kU64;
  PREFIXD_ASSIGN_OR_RETURN(const DType index_dtype, DecodeEnum<DType>(value, "spec.index_dtype"));
  if (index_dtype == DType::kU64 || index_dtype == DType::kU32) return index_dtype;
  return Error(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_COMBINATION", "spec.index_dtype",
               StrCat("indices are u64 or u32, not ", Name(index_dtype)));
}

absl::StatusOr<Precision> DecodePrecision(int value) {
  if (value == v1::PRECISION_UNSPECIFIED) return Precision::kNative;
  return DecodeEnum<Precision>(value, "spec.precision");
}

absl::Status EncodeValue(Value value, DType dtype, v1::Scalar* scalar) {
  if (!IsSupported(dtype)) {
    return Error(absl::StatusCode::kUnimplemented, "NOT_IMPLEMENTED", "spec.dtype",
                 StrCat("this client has no values of the type ", static_cast<int>(dtype)));
  }
  EncodeScalar(value, dtype, scalar);
  return absl::OkStatus();
}

}  // namespace prefixd
