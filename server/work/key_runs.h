// Segments by keys: elements next to each other whose keys are equal. A NaN is equal to none, and -0 to +0.
//
// Threads: any; FindKeyRuns on the lane's.
#ifndef PREFIXD_SERVER_WORK_KEY_RUNS_H_
#define PREFIXD_SERVER_WORK_KEY_RUNS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/lanes/borrowed_lane.h"
#include "server/work/work.h"

namespace prefixd {

// As offsets of segments, on the device.
struct KeyRuns {
  Buffer offsets;
  uint64_t num_offsets = 0;
};

// Device memory that finding the runs of so many keys takes, and what is found.
// Needs: num_items is of an array that is there, or fits a message.
constexpr uint64_t KeyRunsBytes(uint64_t num_items) {
  return RunsScratchBytes(num_items) + (num_items + 1) * sizeof(uint64_t);
}

// What an operation on segments takes of device memory beside its arrays: runs of keys; indices and counts where these
// are not its results.
// Needs: as KeyRunsBytes.
constexpr uint64_t ScratchBytes(const WorkShape& shape, uint64_t num_items, uint64_t num_offsets) {
  uint64_t num_bytes = shape.keys ? KeyRunsBytes(num_items) : 0;
  if (shape.counts_segments) num_bytes += (num_items + 2 * num_offsets) * sizeof(uint64_t);
  return num_bytes;
}

// Where each run of equal keys begins, and where the last one ends. Waits for the lane, whose block for scalars is
// free. Errors: INVALID_ARGUMENT (SEGMENT_OFFSETS), naming "keys", for more runs than a launch takes; the lane's. Cost:
// as Lane::FindRuns.
absl::StatusOr<KeyRuns> FindKeyRuns(BorrowedLane& lane, DType dtype, const std::byte* keys, uint64_t num_items);

// Enqueues that the key of each run of num_items keys is written to `out`.
// Needs: runs.num_offsets is at least 2. The lane's block for scalars is not read until it has run. Errors: the lane's.
absl::Status TakeKeys(BorrowedLane& lane, DType dtype, const KeyRuns& runs, const std::byte* keys, uint64_t num_items,
                      std::byte* out);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_KEY_RUNS_H_
