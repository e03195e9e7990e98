#include "proto/wire_values.h"

#include "base/status.h"
#include "kernels/spec.h"
#include "prefixd/v1/admin.pb.h"

namespace prefixd {
namespace {

static_assert(v1::DTYPE_I8 - 1 == static_cast<int>(DType::kI8));
static_assert(v1::DTYPE_F64 - 1 == static_cast<int>(DType::kF64));
static_assert(v1::OP_SUM - 1 == static_cast<int>(Op::kSum));
static_assert(v1::OP_LOG_ADD_EXP - 1 == static_cast<int>(Op::kLogAddExp));
static_assert(v1::Primitive_ARRAYSIZE - 1 == kNumPrimitives);
// These two have kDefault where the others have UNSPECIFIED.
static_assert(v1::STRATEGY_CHAINED == static_cast<int>(Strategy::kChained));
static_assert(v1::STRATEGY_ONETBB == static_cast<int>(Strategy::kOneTbb));
static_assert(v1::TILE_SCAN_WARP_SHARED_REGISTER == static_cast<int>(TileScan::kWarpSharedRegister));

}  // namespace

absl::Status UnknownEnum(std::string_view field, int value) {
  return Error(absl::StatusCode::kInvalidArgument, "UNKNOWN_ENUM", field,
               value == 0 ? StrCat(field, " is UNSPECIFIED, which is as not set: a value is required")
                          : StrCat(field, " has the value ", value, ", which this version does not know"));
}

absl::StatusOr<Number> DecodeNumber(const v1::Scalar& scalar, std::string_view field) {
  switch (scalar.value_case()) {
    case v1::Scalar::kInt64Value:
      return scalar.int64_value();
    case v1::Scalar::kUint64Value:
      return scalar.uint64_value();
    case v1::Scalar::kDoubleValue:
      return scalar.double_value();
    case v1::Scalar::VALUE_NOT_SET:
      break;
  }
  return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field,
               StrCat(field, " is there but holds no value: set one of its members, or leave it out"));
}

absl::StatusOr<Value> DecodeScalar(const v1::Scalar& scalar, DType dtype, std::string_view field) {
  PREFIXD_ASSIGN_OR_RETURN(const Number number, DecodeNumber(scalar, field));
  return ToValue(number, dtype, field);
}

void EncodeScalar(Value value, DType dtype, v1::Scalar* scalar) {
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsFloating<T>) {
      scalar->set_double_value(value.As<T>());
    } else if constexpr (kIsSignedInteger<T>) {
      scalar->set_int64_value(value.As<T>());
    } else {
      scalar->set_uint64_value(value.As<T>());
    }
  });
}

absl::StatusOr<Algorithm> DecodeAlgorithm(const v1::AlgorithmChoice& choice, std::string_view field) {
  if (choice.strategy() < 0 || choice.strategy() >= kNumStrategies) {
    return UnknownEnum(StrCat(field, ".strategy"), choice.strategy());
  }
  if (choice.tile_scan() < 0 || choice.tile_scan() >= kNumTileScans) {
    return UnknownEnum(StrCat(field, ".tile_scan"), choice.tile_scan());
  }
  PREFIXD_RETURN_IF_ERROR(CheckItemsPerThread(choice.items_per_thread(), StrCat(field, ".items_per_thread")));
  return Algorithm{static_cast<Strategy>(choice.strategy()), static_cast<TileScan>(choice.tile_scan()),
                   static_cast<uint8_t>(choice.items_per_thread()), choice.padding()};
}

void EncodeAlgorithm(const Algorithm& algorithm, v1::AlgorithmChoice* choice) {
  choice->set_strategy(static_cast<v1::Strategy>(algorithm.strategy));
  choice->set_tile_scan(static_cast<v1::TileScan>(algorithm.tile_scan));
  choice->set_items_per_thread(algorithm.items_per_thread);
  choice->set_padding(algorithm.padding);
}

}  // namespace prefixd
