#include "proto/wire_difference.h"

#include "proto/wire_spec.h"

namespace prefixd {

absl::StatusOr<DifferenceSpec> FromWire(const v1::DifferenceSpec& wire) {
  DifferenceSpec spec;
  PREFIXD_RETURN_IF_ERROR(DecodeCommon(wire, &spec));
  PREFIXD_RETURN_IF_ERROR(DecodeInit(wire, &spec));
  spec.reverse = wire.reverse();
  return spec;
}

absl::StatusOr<v1::DifferenceSpec> ToWire(const DifferenceSpec& spec) {
  v1::DifferenceSpec wire;
  EncodeCommon(spec, &wire);
  wire.set_reverse(spec.reverse);
  PREFIXD_RETURN_IF_ERROR(EncodeInit(spec, &wire));
  return wire;
}

}  // namespace prefixd
