#include "proto/wire_compact.h"

#include "proto/wire_spec.h"

namespace prefixd {
namespace {

static_assert(v1::COMPARISON_LESS - 1 == static_cast<int>(Comparison::kLess));
static_assert(v1::COMPARISON_IN_RANGE - 1 == static_cast<int>(Comparison::kInRange));
static_assert(v1::MASK_KIND_BYTES - 1 == static_cast<int>(MaskKind::kBytes));
static_assert(v1::MASK_KIND_BITS - 1 == static_cast<int>(MaskKind::kBits));

absl::StatusOr<Predicate> DecodePredicate(const v1::Predicate& wire, DType dtype) {
  Predicate predicate;
  PREFIXD_ASSIGN_OR_RETURN(predicate.comparison,
                           DecodeEnum<Comparison>(wire.comparison(), "spec.predicate.comparison"));
  PREFIXD_RETURN_IF_ERROR(CheckComparison(predicate.comparison, wire.has_value(), wire.has_end(), "spec.predicate"));
  if (wire.has_value()) {
    PREFIXD_ASSIGN_OR_RETURN(predicate.value, DecodeScalar(wire.value(), dtype, "spec.predicate.value"));
  }
  if (wire.has_end()) {
    PREFIXD_ASSIGN_OR_RETURN(predicate.end, DecodeScalar(wire.end(), dtype, "spec.predicate.end"));
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
  v1::Predicate* const predicate = wire.mutable_predicate();
  predicate->set_comparison(EncodeEnum<v1::Comparison>(spec.predicate->comparison));
  if (HasValue(spec.predicate->comparison)) {
    PREFIXD_RETURN_IF_ERROR(EncodeValue(spec.predicate->value, spec.dtype, predicate->mutable_value()));
  }
  if (HasEnd(spec.predicate->comparison)) {
    PREFIXD_RETURN_IF_ERROR(EncodeValue(spec.predicate->end, spec.dtype, predicate->mutable_end()));
  }
  return wire;
}

}  // namespace prefixd
