#include "proto/wire_scan.h"

#include "proto/wire_spec.h"

namespace prefixd {

static_assert(v1::PRECISION_WIDE - 1 == static_cast<int>(Precision::kWide));
static_assert(v1::SCAN_KIND_EXCLUSIVE - 1 == static_cast<int>(ScanKind::kExclusive));

absl::StatusOr<ScanSpec> FromWire(const v1::ScanSpec& wire) {
  ScanSpec spec;
  PREFIXD_RETURN_IF_ERROR(DecodeCommon(wire, &spec));
  PREFIXD_RETURN_IF_ERROR(DecodeOperator(wire, &spec));
  if (wire.kind() != v1::SCAN_KIND_UNSPECIFIED) {
    PREFIXD_ASSIGN_OR_RETURN(spec.kind, DecodeEnum<ScanKind>(wire.kind(), "spec.kind"));
  }
  PREFIXD_RETURN_IF_ERROR(DecodeInit(wire, &spec));
  PREFIXD_ASSIGN_OR_RETURN(spec.precision, DecodePrecision(wire.precision()));
  spec.reverse = wire.reverse();
  spec.include_initial = wire.include_initial();
  spec.return_indices = wire.return_indices();
  PREFIXD_ASSIGN_OR_RETURN(spec.index_dtype, DecodeIndexDType(wire.index_dtype()));
  spec.last_index = wire.last_index();
  if (wire.has_coefficient()) {
    PREFIXD_ASSIGN_OR_RETURN(spec.coefficient, DecodeScalar(wire.coefficient(), spec.dtype, "spec.coefficient"));
  }
  return spec;
}

absl::StatusOr<v1::ScanSpec> ToWire(const ScanSpec& spec) {
  v1::ScanSpec wire;
  EncodeCommon(spec, &wire);
  EncodeOperator(spec, &wire);
  wire.set_kind(EncodeEnum<v1::ScanKind>(spec.kind));
  if (spec.precision != Precision::kNative) wire.set_precision(EncodeEnum<v1::Precision>(spec.precision));
  wire.set_reverse(spec.reverse);
  wire.set_include_initial(spec.include_initial);
  wire.set_return_indices(spec.return_indices);
  if (spec.index_dtype != DType::kU64) wire.set_index_dtype(EncodeEnum<v1::DType>(spec.index_dtype));
  wire.set_last_index(spec.last_index);
  PREFIXD_RETURN_IF_ERROR(EncodeInit(spec, &wire));
  if (spec.coefficient) {
    PREFIXD_RETURN_IF_ERROR(EncodeValue(*spec.coefficient, spec.dtype, wire.mutable_coefficient()));
  }
  return wire;
}

}  // namespace prefixd
