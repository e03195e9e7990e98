#include "proto/wire_reduce.h"

#include "proto/wire_spec.h"

namespace prefixd {

absl::StatusOr<ReduceSpec> FromWire(const v1::ReduceSpec& wire) {
  ReduceSpec spec;
  PREFIXD_RETURN_IF_ERROR(DecodeCommon(wire, &spec));
  PREFIXD_RETURN_IF_ERROR(DecodeOperator(wire, &spec));
  PREFIXD_RETURN_IF_ERROR(DecodeInit(wire, &spec));
  PREFIXD_ASSIGN_OR_RETURN(spec.precision, DecodePrecision(wire.precision()));
  spec.return_keys = wire.return_keys();
  return spec;
}

absl::StatusOr<v1::ReduceSpec> ToWire(const ReduceSpec& spec) {
  v1::ReduceSpec wire;
  EncodeCommon(spec, &wire);
  EncodeOperator(spec, &wire);
  if (spec.precision != Precision::kNative) wire.set_precision(EncodeEnum<v1::Precision>(spec.precision));
  PREFIXD_RETURN_IF_ERROR(EncodeInit(spec, &wire));
  wire.set_return_keys(spec.return_keys);
  return wire;
}

}  // namespace prefixd
