// What joins a part of an array that was scanned to the part behind it, between two calls: as bytes that callers pass
// on and don't look into. It is of one spec, and of one numerics version.
//
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_WORK_SCAN_CARRY_H_
#define PREFIXD_SERVER_WORK_SCAN_CARRY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/payload.h"
#include "server/work/work.h"

namespace prefixd {

struct ScanCarry {
  uint64_t num_items = 0;         // Elements so far, of a scan with indices.
  std::string value;              // The carry of all whole groups. Empty: there are none.
  std::string open_items;         // The elements since the last whole group, where the bits depend on cuts.
  std::string open_coefficients;  // Theirs, if they have some.
};

// Whether calls of this work may go on where others ended.
// Errors: INVALID_ARGUMENT (FIELD_CONFLICT) for a reverse scan, which begins at the end.
absl::Status CheckCarries(const Work& work);

std::string EncodeCarry(const Work& work, const ScanCarry& carry);
// Errors: INVALID_ARGUMENT (CARRY) for what EncodeCarry has not made for a work of the same spec.
absl::StatusOr<ScanCarry> DecodeCarry(const Work& work, const Payload& bytes);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_SCAN_CARRY_H_
