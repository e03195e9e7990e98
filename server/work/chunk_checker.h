// Checks a caller's chunks as they come: their lengths against the spec and against the chunks before.
//
// Threads: one at a time; the session's lock guards it. It touches no payload and no device.
#ifndef PREFIXD_SERVER_WORK_CHUNK_CHECKER_H_
#define PREFIXD_SERVER_WORK_CHUNK_CHECKER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/request.h"
#include "server/work/work.h"

namespace prefixd {

class ChunkChecker {
 public:
  ChunkChecker(std::shared_ptr<const Work> work, CallShape shape) : work_(std::move(work)), shape_(shape) {}

  // The next chunk.
  // Errors: INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE, CHUNK_OUT_OF_ORDER, MASK_LENGTH, COUNT_MISMATCH, FIELD_CONFLICT,
  //         ALGORITHM_LIMIT for the chunks so far, this one included);
  //         OUT_OF_RANGE (REPLY_TOO_LARGE) for a unary call.
  absl::Status Check(const Chunk& chunk);

  // Nothing comes any more. Errors: INVALID_ARGUMENT (COUNT_MISMATCH) if the array was declared longer.
  absl::Status Finish() const;

 private:
  absl::Status CheckMask(const Chunk& chunk, uint64_t num_items) const;

  const std::shared_ptr<const Work> work_;
  const CallShape shape_;
  uint64_t num_items_ = 0;  // Checked so far.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_CHUNK_CHECKER_H_
