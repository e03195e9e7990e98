// Requests of one shape in one launch: one copy in, one kernel, one copy out. Each has the bits it would have alone.
//
// Threads: the lane's.
#ifndef PREFIXD_SERVER_WORK_BATCH_H_
#define PREFIXD_SERVER_WORK_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/lanes/borrowed_lane.h"
#include "server/request.h"
#include "server/work/piece_runner.h"

namespace prefixd {

// One of the batch.
struct BatchedPiece {
  PieceRunner* runner = nullptr;
  const Piece* piece = nullptr;  // For which the runner's IsBatchable holds.
  std::optional<Reply> reply;    // As PieceRunner::Run sets it.
};

// How many arrays of num_items a lane's blocks hold, at least one.
size_t MaxBatchSize(const Work& work, uint64_t num_items);

// Runs the pieces in the place of their runners. On return the lane is idle, also after an error.
// Needs:  specs that are equal but for their declared lengths, pieces of one length, at most MaxBatchSize of them.
// Errors: those of the lane; then the runners and replies are as they were.
absl::Status RunBatch(BorrowedLane& lane, absl::Span<BatchedPiece> batch);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_BATCH_H_
