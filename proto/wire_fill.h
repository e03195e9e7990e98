// What a range is filled with, on the wire and in the domain.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_FILL_H_
#define PREFIXD_PROTO_WIRE_FILL_H_

#include "absl/status/statusor.h"
#include "kernels/operation.h"
#include "prefixd/v1/arrays.pb.h"

namespace prefixd {

// The fill of items of dtype. Errors have fields of the Fill.
// Errors: INVALID_ARGUMENT (FIELD_CONFLICT if it says nothing, SCALAR_OUT_OF_RANGE).
absl::StatusOr<FillSpec> FromWire(const v1::Fill& wire, DType dtype);
v1::Fill ToWire(const FillSpec& spec);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_FILL_H_
