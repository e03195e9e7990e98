// What offsets of segments have to be: u64, one more than there are segments, the first 0, the last the number of
// elements, and none below the one before. Kernels trust them, so nobody runs with others.
//
// Threads: any; CheckResidentOffsets on the lane's.
#ifndef PREFIXD_SERVER_WORK_SEGMENT_OFFSETS_H_
#define PREFIXD_SERVER_WORK_SEGMENT_OFFSETS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "proto/payload.h"
#include "server/call/stop_signal.h"
#include "server/lanes/borrowed_lane.h"

namespace prefixd {

// Errors: INVALID_ARGUMENT (SEGMENT_OFFSETS), naming `field`, for none, or for more than a launch takes.
absl::Status CheckNumOffsets(uint64_t num_offsets, std::string_view field);

// Those that came in a message, of an array of num_items.
// Errors: INVALID_ARGUMENT (SEGMENT_OFFSETS), naming the first that is wrong; also for more than 1 MiB.
// Cost:   reads them once.
absl::Status CheckInlineOffsets(const Payload& offsets, uint64_t num_items);

// Those in device memory, which came from `field`. Waits for the lane, whose blocks for scalars and masks are free.
// Needs:  CheckNumOffsets is OK.
// Errors: as above; the lane's; those of `stop`, which is asked before each million.
// Cost:   two launches for each million, which read them twice.
absl::Status CheckResidentOffsets(BorrowedLane& lane, const std::byte* offsets, uint64_t num_offsets,
                                  uint64_t num_items, const StopSignal& stop, std::string_view field);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_SEGMENT_OFFSETS_H_
