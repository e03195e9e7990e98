// The spec of a difference to the wire and back.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_DIFFERENCE_H_
#define PREFIXD_PROTO_WIRE_DIFFERENCE_H_

#include "absl/status/statusor.h"
#include "kernels/spec.h"
#include "prefixd/v1/primitives.pb.h"

namespace prefixd {

// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, SCALAR_OUT_OF_RANGE, FIELD_CONFLICT, ALGORITHM_CHOICE);
//         UNIMPLEMENTED (NOT_IMPLEMENTED) for what is in the contract and not served.
absl::StatusOr<DifferenceSpec> FromWire(const v1::DifferenceSpec& wire);

// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) for an init of a type that is not served. The rest is the server's to judge.
absl::StatusOr<v1::DifferenceSpec> ToWire(const DifferenceSpec& spec);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_DIFFERENCE_H_
