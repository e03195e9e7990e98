// The spec of a compact to the wire and back.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_COMPACT_H_
#define PREFIXD_PROTO_WIRE_COMPACT_H_

#include "absl/status/statusor.h"
#include "kernels/spec.h"
#include "prefixd/v1/primitives.pb.h"

namespace prefixd {

// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, UNSUPPORTED_COMBINATION, SCALAR_OUT_OF_RANGE, FIELD_CONFLICT,
// ALGORITHM_CHOICE);
//         UNIMPLEMENTED (NOT_IMPLEMENTED) for what is in the contract and not served.
absl::StatusOr<CompactSpec> FromWire(const v1::CompactSpec& wire);

// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) for a predicate's value of a type that is not served. The rest is the
// server's to judge.
absl::StatusOr<v1::CompactSpec> ToWire(const CompactSpec& spec);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_COMPACT_H_
