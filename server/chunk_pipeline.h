// The work of one request: checks each chunk, cuts it into pieces that fit a staging block and a reply, and runs each
// piece through a lane (copy in, run, copy out). What joins the pieces (the carry of a scan, the state of a reduce)
// stays on the device between chunks, so an array of any length passes through in bounded memory.
//
// Threads: Check by one thread and Run by another at the same time, each for one chunk at a time, in the same order.
//          Finish after both.
#ifndef PREFIXD_SERVER_CHUNK_PIPELINE_H_
#define PREFIXD_SERVER_CHUNK_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/lane_pool.h"
#include "server/request.h"
#include "server/stop_signal.h"

namespace prefixd {

enum class CallShape { kUnary, kStream };

class ChunkPipeline {
 public:
  // Errors: UNIMPLEMENTED if the device does not serve the spec; FAILED_PRECONDITION for reverse on a stream.
  static absl::StatusOr<std::unique_ptr<ChunkPipeline>> Create(const Device& device, const Spec& spec, CallShape shape);

  // Checks the chunk's lengths against the spec and the chunks before it. Cheap; touches no payload.
  // Errors: INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE, CHUNK_OUT_OF_ORDER, MASK_LENGTH, COUNT_MISMATCH, FIELD_CONFLICT);
  //         OUT_OF_RANGE (REPLY_TOO_LARGE) for a unary call.
  absl::Status Check(const Chunk& chunk);

  // Runs a checked chunk and appends its replies: at least one for a chunk with elements, but none for a reduce.
  // Blocks on the device: for lane threads. On return the lane is idle, also after an error.
  // Errors: those of the lane, and of `stop`, which is asked before every piece.
  absl::Status Run(BorrowedLane& lane, const Chunk& chunk, const StopSignal& stop, std::vector<Reply>* replies);

  // Checks that the whole array came. Errors: INVALID_ARGUMENT (COUNT_MISMATCH).
  absl::Status Finish() const;

  const Spec& spec() const { return spec_; }

  // Sets the parts of the result that come from the work: value, index, count kept, device times.
  void Describe(Result* result) const;

 private:
  ChunkPipeline(const Spec& spec, CallShape shape);

  absl::Status RunPieces(BorrowedLane& lane, const Chunk& chunk, const StopSignal& stop, std::vector<Reply>* replies);
  absl::Status RunPiece(const ScanSpec& scan, BorrowedLane& lane, uint64_t num_items, std::vector<Reply>* replies);
  absl::Status RunPiece(const ReduceSpec& reduce, BorrowedLane& lane, uint64_t num_items, std::vector<Reply>* replies);
  absl::Status RunPiece(const CompactSpec& compact, BorrowedLane& lane, uint64_t num_items,
                        std::vector<Reply>* replies);
  // Copies between messages and staging, and counts the time.
  void CopyIn(const StagingBlock& block, std::string_view bytes);
  std::string CopyOut(const StagingBlock& block, uint64_t size_bytes);

  const Spec spec_;
  const CallShape shape_;
  uint64_t reply_bytes_per_item_ = 0;  // At most; 0 for a reduce.
  uint64_t piece_items_ = 0;

  uint64_t items_checked_ = 0;  // Check's.

  // Run's.
  uint64_t items_done_ = 0;
  uint64_t items_kept_ = 0;
  Buffer state_;  // Device: one element of carry, or one ReduceState.
  ReduceState reduced_;
  StageTimes device_times_;
  int64_t host_copy_ns_ = 0;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CHUNK_PIPELINE_H_
