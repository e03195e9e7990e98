// Checks a caller's chunks as they come: their lengths against the spec and against the chunks before.
//
// Threads: one at a time; the session's lock guards it. It touches no payload and no device.
#ifndef PREFIXD_SERVER_WORK_CHUNK_CHECKER_H_
#define PREFIXD_SERVER_WORK_CHUNK_CHECKER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/arrays/places.h"
#include "server/request.h"
#include "server/work/work.h"

namespace prefixd {

class ChunkChecker {
 public:
  // places: of what is resident. Only looked at here.
  ChunkChecker(std::shared_ptr<const Work> work, CallShape shape, const Places& places = {});

  // The next chunk. Sets how many elements it has: those of its values, or, where they are resident, of its mask; the
  // first has all of them where that is resident too. And whether it leaves something to run.
  // Errors: INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE, CHUNK_OUT_OF_ORDER, MASK_LENGTH, COUNT_MISMATCH, FIELD_CONFLICT,
  //         SEGMENT_OFFSETS, KEYS_LENGTH, COEFFICIENTS_LENGTH; ALGORITHM_LIMIT for the chunks so far, this one
  //         included); OUT_OF_RANGE (REPLY_TOO_LARGE) for a unary call, SINK_TOO_SMALL for a slice.
  absl::Status Check(Chunk* chunk);

  // Nothing comes any more. Errors: INVALID_ARGUMENT (COUNT_MISMATCH) if the array was declared longer; SHAPE if its
  // last row is not whole.
  absl::Status Finish() const;

 private:
  absl::Status CheckInlineValues(Chunk* chunk) const;
  absl::Status CheckResidentValues(Chunk* chunk) const;
  absl::Status CheckInlineMask(const Chunk& chunk) const;
  absl::Status CheckResidentMask(const Chunk& chunk) const;
  absl::Status CheckChunkCoefficients(const Chunk& chunk) const;
  // Sets how many offsets of segments there are.
  absl::Status CheckOffsets(Chunk* chunk) const;
  absl::Status CheckKeys(const Chunk& chunk) const;

  const std::shared_ptr<const Work> work_;
  const CallShape shape_;
  const bool has_inline_values_;
  const std::optional<uint64_t> resident_items_;       // Where the values are resident, or made of nothing.
  const std::optional<uint64_t> resident_mask_bytes_;  // Nothing: the mask is inline, or there is none.
  const std::optional<uint64_t> resident_coefficients_;
  const std::optional<uint64_t> resident_offsets_;  // How many a segmented operation has.
  const std::optional<uint64_t> resident_keys_;
  const std::optional<uint64_t> capacity_;  // For values that go into a slice. Nothing: no bound.
  const uint64_t reply_bytes_per_item_;
  const uint64_t reply_bytes_per_segment_;
  bool has_begun_ = false;
  uint64_t num_items_ = 0;  // Checked so far.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_CHUNK_CHECKER_H_
