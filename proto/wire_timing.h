// Timing to the wire and back.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_WIRE_TIMING_H_
#define PREFIXD_PROTO_WIRE_TIMING_H_

#include "prefixd/v1/types.pb.h"
#include "proto/timing.h"

namespace prefixd {

// An algorithm that this side does not know becomes {}.
Timing FromWire(const v1::Timing& wire);

// Computes kernel_gb_per_s and numerics_version from the other members, and ignores what these two hold.
v1::Timing ToWire(const Timing& timing);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_WIRE_TIMING_H_
