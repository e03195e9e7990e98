// Single values of the wire, and what they are in the domain: enums, scalars, algorithms.
// Threads: any; nothing here keeps state.
//
// field: of the message, for errors.
#ifndef PREFIXD_SERVER_WIRE_VALUES_H_
#define PREFIXD_SERVER_WIRE_VALUES_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/types.h"
#include "prefixd/v1/types.pb.h"

namespace prefixd {

// INVALID_ARGUMENT (UNKNOWN_ENUM): this value has no meaning there.
absl::Status UnknownEnum(std::string_view field, int value);

// The wire's enums are the domain's, in the same order, behind an UNSPECIFIED that is 0; wire_values.cc asserts it.
// last: of the domain's values. Errors: UnknownEnum's, for UNSPECIFIED too.
template <class Domain>
absl::StatusOr<Domain> DecodeEnum(int value, Domain last, std::string_view field) {
  if (value < 1 || value > static_cast<int>(last) + 1) return UnknownEnum(field, value);
  return static_cast<Domain>(value - 1);
}

template <class Wire, class Domain>
Wire EncodeEnum(Domain value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

// The value as one of dtype: exactly for an integer, rounded for a floating-point type; a NaN comes out canonical.
// Errors: INVALID_ARGUMENT (SCALAR_OUT_OF_RANGE; FIELD_CONFLICT if it holds none).
absl::StatusOr<Value> DecodeScalar(const v1::Scalar& scalar, DType dtype, std::string_view field);
void EncodeScalar(Value value, DType dtype, v1::Scalar* scalar);

// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, ALGORITHM_CHOICE). What goes with what is not checked here: Device::Resolve
// does.
absl::StatusOr<Algorithm> DecodeAlgorithm(const v1::AlgorithmChoice& choice, std::string_view field);
void EncodeAlgorithm(const Algorithm& algorithm, v1::AlgorithmChoice* choice);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WIRE_VALUES_H_
