// The limits of a program, which programs.proto states: the server enforces them, the client finds them before it
// sends.
#ifndef PREFIXD_PROTO_PROGRAM_LIMITS_H_
#define PREFIXD_PROTO_PROGRAM_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace prefixd {

inline constexpr size_t kMaxProgramSteps = 64;
inline constexpr size_t kMaxProgramInputs = 64;
inline constexpr size_t kMaxProgramOutputs = 64;
// A RunRequest, as it is on the wire.
inline constexpr uint64_t kMaxProgramBytes = uint64_t{64} << 10;

}  // namespace prefixd

#endif  // PREFIXD_PROTO_PROGRAM_LIMITS_H_
