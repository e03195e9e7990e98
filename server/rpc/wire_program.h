// A program from the wire.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_WIRE_PROGRAM_H_
#define PREFIXD_SERVER_RPC_WIRE_PROGRAM_H_

#include "absl/status/statusor.h"
#include "prefixd/v1/programs.pb.h"
#include "server/program/program.h"

namespace prefixd {

// Looks at each field by itself: MakePlan judges what they are together.
// Ownership: takes the bytes of inline inputs out of the request.
// Errors:  as the FromWire of the specs, with paths such as steps[3].scan.spec.op; INVALID_ARGUMENT (SPEC_MISSING,
//          FIELD_CONFLICT, CHUNK_OUT_OF_ORDER, LIFETIME); UNIMPLEMENTED (NOT_IMPLEMENTED) for operands and sinks that
//          are in the contract and not served.
absl::StatusOr<Program> FromWire(v1::RunRequest request);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_WIRE_PROGRAM_H_
