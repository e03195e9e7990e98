#include "proto/wire_compact.h"

#include "proto/wire_spec.h"

namespace prefixd {
namespace {

static_assert(v1::COMPARISON_LESS - 1 == static_cast<int>(Comparison::kLess));
static_assert(v1::COMPARISON_IS_FINITE - 1 == static_cast<int>(Comparison::kIsFinite));
static_assert(v1::MASK_KIND_BYTES - 1 == static_cast<int>(MaskKind::kBytes));
static_assert(v1::MASK_KIND_BITS - 1 == static_cast<int>(MaskKind::kBits));

absl::StatusOr<Predicate> DecodePredicate(const v1::Predicate& wire, DType dtype) {
  if (wire.comparison() == v1::COMPARISON_IN_RANGE) return NotImplemented("spec.predicate.comparison", "a range");
  Predicate predicate;
  PREFIXD_ASSIGN_OR_RETURN(predicate.comparison,
                           DecodeEnum<Comparison>(wire.comparison(), "spec.predicate.comparison"));
  const bool takes_value = TakesValue(predicate.comparison);
  if (takes_value != wire.has_value()) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.predicate.value",
                 StrCat("the comparison ", Name(predicate.comparison), " takes ", takes_value ? "a" : "no", " value"));
  }
  if (takes_value) {
    PREFIXD_ASSIGN_OR_RETURN(predicate.value, DecodeScalar(wire.value(), dtype, "spec.predicate.value"));
  }
  return predicate;
}

}  // namespace

absl::StatusOr<CompactSpec> FromWire(const v1::CompactSpec& wire) {
  CompactSpec spec;
  PREFIXD_RETURN_IF_ERROR(DecodeCommon(wire, &spec));
  switch (wire.selector_case()) {
    case v1::CompactSpec::kPredicate: {
      PREFIXD_ASSIGN_OR_RETURN(spec.predicate, DecodePredicate(wire.predicate(), spec.dtype));
      break;
    }
    case v1::CompactSpec::kMask:
      if (wire.mask() != v1::MASK_KIND_BYTES && wire.mask() != v1::MASK_KIND_BITS) {
        return UnknownEnum("spec.mask", wire.mask());
      }
      spec.mask_kind = wire.mask() == v1::MASK_KIND_BITS ? MaskKind::kBits : MaskKind::kBytes;
      break;
    case v1::CompactSpec::SELECTOR_NOT_SET:
      return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.selector",
                   "nothing selects: set spec.predicate, or spec.mask and send a mask");
  }
  if (wire.has_capacity()) return NotImplemented("spec.capacity", "a bound on what is kept");
  spec.invert = wire.invert();
  spec.return_values = !wire.omit_values();
  spec.return_indices = wire.return_indices();
  PREFIXD_ASSIGN_OR_RETURN(spec.index_dtype, DecodeIndexDType(wire.index_dtype()));
  return spec;
}

absl::StatusOr<v1::CompactSpec> ToWire(const CompactSpec& spec) {
  v1::CompactSpec wire;
  EncodeCommon(spec, &wire);
  wire.set_invert(spec.invert);
  wire.set_omit_values(!spec.return_values);
  wire.set_return_indices(spec.return_indices);
  if (spec.index_dtype != DType::kU64) wire.set_index_dtype(EncodeEnum<v1::DType>(spec.index_dtype));
  if (!spec.predicate) {
    wire.set_mask(EncodeEnum<v1::MaskKind>(spec.mask_kind));
    return wire;
  }
  wire.mutable_predicate()->set_comparison(EncodeEnum<v1::Comparison>(spec.predicate->comparison));
  if (TakesValue(spec.predicate->comparison)) {
    PREFIXD_RETURN_IF_ERROR(EncodeValue(spec.predicate->value, spec.dtype, wire.mutable_predicate()->mutable_value()));
  }
  return wire;
}

}  // namespace prefixd
