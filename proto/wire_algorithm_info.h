// AlgorithmInfo to the wire and back.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_ALGORITHM_INFO_H_
#define PREFIXD_PROTO_WIRE_ALGORITHM_INFO_H_

#include <optional>

#include "kernels/algorithm_info.h"
#include "prefixd/v1/admin.pb.h"

namespace prefixd {

// Nothing for an algorithm, or a primitive, that only a newer server knows.
std::optional<AlgorithmInfo> FromWire(const v1::AlgorithmInfo& wire);
v1::AlgorithmInfo ToWire(const AlgorithmInfo& row);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_ALGORITHM_INFO_H_
