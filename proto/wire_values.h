// Single values of the wire, and what they are in the domain: enums, scalars, algorithms. Server and client use them.
// Messages that are made of several such values have files of their own (wire_scan.h and so on).
// Threads: any; nothing here keeps state.
//
// An argument `field` is the path of the message's field, which an error names.
#ifndef PREFIXD_PROTO_WIRE_VALUES_H_
#define PREFIXD_PROTO_WIRE_VALUES_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/algorithm.h"
#include "kernels/number.h"
#include "kernels/types.h"
#include "prefixd/v1/types.pb.h"

namespace prefixd {

// INVALID_ARGUMENT (UNKNOWN_ENUM): the field can't have this value.
absl::Status UnknownEnum(std::string_view field, int value);

// The wire's enums are the domain's, in the same order, behind an UNSPECIFIED that is 0; wire_values.cc asserts it.

// How many values a domain's enum has.
template <class Domain>
inline constexpr int kNumValues = 0;
template <>
inline constexpr int kNumValues<DType> = kNumDTypes;
template <>
inline constexpr int kNumValues<Op> = kNumOps;
template <>
inline constexpr int kNumValues<Primitive> = kNumPrimitives;
template <>
inline constexpr int kNumValues<Precision> = static_cast<int>(Precision::kWide) + 1;
template <>
inline constexpr int kNumValues<ScanKind> = static_cast<int>(ScanKind::kExclusive) + 1;
template <>
inline constexpr int kNumValues<Comparison> = static_cast<int>(Comparison::kInRange) + 1;

// Nothing for UNSPECIFIED, and for a value that only a newer peer knows.
template <class Domain>
std::optional<Domain> KnownEnum(int value) {
  static_assert(kNumValues<Domain> > 0);
  if (value < 1 || value > kNumValues<Domain>) return std::nullopt;
  return static_cast<Domain>(value - 1);
}

// The same where it is an error: UnknownEnum's.
template <class Domain>
absl::StatusOr<Domain> DecodeEnum(int value, std::string_view field) {
  if (const std::optional<Domain> known = KnownEnum<Domain>(value)) return *known;
  return UnknownEnum(field, value);
}

template <class Wire, class Domain>
Wire EncodeEnum(Domain value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

// Errors: INVALID_ARGUMENT (FIELD_CONFLICT) if the scalar holds no value.
absl::StatusOr<Number> DecodeNumber(const v1::Scalar& scalar, std::string_view field);
// The value as one of dtype: exactly for an integer, rounded for a floating-point type; a NaN comes out canonical.
// Errors: those of DecodeNumber and ToValue.
absl::StatusOr<Value> DecodeScalar(const v1::Scalar& scalar, DType dtype, std::string_view field);
void EncodeScalar(Value value, DType dtype, v1::Scalar* scalar);

// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, ALGORITHM_CHOICE). Whether the choices go together is not checked here:
// Device::Resolve does that.
absl::StatusOr<Algorithm> DecodeAlgorithm(const v1::AlgorithmChoice& choice, std::string_view field);
void EncodeAlgorithm(const Algorithm& algorithm, v1::AlgorithmChoice* choice);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_VALUES_H_
