// Resident arrays on the wire, and in the domain: what is asked for, what there is, and the parts that calls name.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_ARRAY_H_
#define PREFIXD_PROTO_WIRE_ARRAY_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/operation.h"
#include "prefixd/v1/arrays.pb.h"
#include "proto/array_info.h"

namespace prefixd {

// field: where the message stands, for errors.

ArraySlice FromWire(const v1::ArraySlice& wire);
v1::ArraySlice ToWire(const ArraySlice& slice);

// Errors: INVALID_ARGUMENT (LIFETIME) for what is no time.
absl::StatusOr<Lifetime> FromWire(const v1::Lifetime& wire, std::string_view field);
v1::Lifetime ToWire(const Lifetime& lifetime);

// Errors: also UNKNOWN_ENUM, and NOT_IMPLEMENTED for a type that is not served or another device than 0.
absl::StatusOr<ArraySpec> FromWire(const v1::CreateArrayRequest& wire);
// Errors: INVALID_ARGUMENT (MALFORMED) for what no server sends.
absl::StatusOr<ArrayInfo> FromWire(const v1::Array& wire);
v1::Array ToWire(const ArrayInfo& info);

// The resident array that an operand is in. Nothing: it is inline.
// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) for what this version does not serve.
absl::StatusOr<std::optional<ArraySlice>> FromWire(const v1::Operand& wire, std::string_view field);
absl::StatusOr<Sink> FromWire(const v1::Sink& wire, std::string_view field);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_ARRAY_H_
