#include "proto/wire_fill.h"

#include "base/status.h"
#include "proto/wire_values.h"

namespace prefixd {

absl::StatusOr<FillSpec> FromWire(const v1::Fill& wire, DType dtype) {
  FillSpec spec;
  spec.dtype = dtype;
  switch (wire.content_case()) {
    case v1::Fill::kValue: {
      spec.kind = FillKind::kConstant;
      PREFIXD_ASSIGN_OR_RETURN(spec.value, DecodeScalar(wire.value(), dtype, "value"));
      return spec;
    }
    case v1::Fill::kIota: {
      spec.kind = FillKind::kIota;
      if (wire.iota().has_start()) {
        PREFIXD_ASSIGN_OR_RETURN(spec.value, DecodeScalar(wire.iota().start(), dtype, "iota.start"));
      }
      PREFIXD_ASSIGN_OR_RETURN(spec.step, wire.iota().has_step() ? DecodeScalar(wire.iota().step(), dtype, "iota.step")
                                                                 : ToValue(int64_t{1}, dtype, "iota.step"));
      return spec;
    }
    case v1::Fill::kRandom:
      spec.kind = FillKind::kRandom;
      spec.seed = wire.random().seed();
      spec.first = wire.random().first();
      return spec;
    case v1::Fill::CONTENT_NOT_SET:
      break;
  }
  return InvalidField("FIELD_CONFLICT", "", "nothing says what the items are: set value, iota or random");
}

v1::Fill ToWire(const FillSpec& spec) {
  v1::Fill wire;
  switch (spec.kind) {
    case FillKind::kConstant:
      EncodeScalar(spec.value, spec.dtype, wire.mutable_value());
      break;
    case FillKind::kIota:
      EncodeScalar(spec.value, spec.dtype, wire.mutable_iota()->mutable_start());
      EncodeScalar(spec.step, spec.dtype, wire.mutable_iota()->mutable_step());
      break;
    case FillKind::kRandom:
      wire.mutable_random()->set_seed(spec.seed);
      wire.mutable_random()->set_first(spec.first);
      break;
  }
  return wire;
}

}  // namespace prefixd
