// The work of one request: checks each chunk, cuts it into pieces that fit a staging block and a reply, and runs each
// piece through a lane (copy in, run, copy out). What joins the pieces (the carry of a scan, the state of a reduce)
// stays on the device between chunks, so an array of any length passes through in bounded memory.
//
// Threads: Check by one thread and RunPiece by another at the same time, each for one chunk at a time, in the same
//          order. Finish after both.
#ifndef PREFIXD_SERVER_CHUNK_PIPELINE_H_
#define PREFIXD_SERVER_CHUNK_PIPELINE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
  // Errors: those of Device::Resolve, and of CheckLength for a declared length; FAILED_PRECONDITION for reverse on a
  //         stream. The device outlives the pipeline.
  static absl::StatusOr<std::unique_ptr<ChunkPipeline>> Create(const Device& device, const Spec& spec, CallShape shape);

  // Checks the chunk's lengths against the spec and the chunks before it. Cheap; touches no payload.
  // Errors: INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE, CHUNK_OUT_OF_ORDER, MASK_LENGTH, COUNT_MISMATCH, FIELD_CONFLICT,
  //         ALGORITHM_LIMIT for the chunks so far, this one included);
  //         OUT_OF_RANGE (REPLY_TOO_LARGE) for a unary call.
  absl::Status Check(const Chunk& chunk);

  // Runs the piece of a checked chunk that begins at its element `first`, and returns how many elements that were.
  // Sets *reply, but not for a reduce. The pieces of a chunk, and the chunks, are run in order.
  // Blocks on the device: for lane threads. On return the lane is idle, also after an error.
  // Errors: those of the lane, and of `stop`, which is asked before anything is enqueued.
  absl::StatusOr<uint64_t> RunPiece(BorrowedLane& lane, const Chunk& chunk, uint64_t first, const StopSignal& stop,
                                    std::optional<Reply>* reply);

  // Checks that the whole array came. Errors: INVALID_ARGUMENT (COUNT_MISMATCH).
  absl::Status Finish() const;

  const Spec& spec() const { return spec_; }

  // Sets the parts of the result that come from the work: value, index, count kept, device times.
  void Describe(Result* result) const;

 private:
  ChunkPipeline(const Device& device, const Spec& spec, CallShape shape);

  // Copies num_items elements in from `first` on, runs them and copies out what they make.
  absl::Status Pass(BorrowedLane& lane, const Chunk& chunk, uint64_t first, uint64_t num_items,
                    std::optional<Reply>* reply);
  absl::Status Run(const ScanSpec& scan, BorrowedLane& lane, uint64_t num_items, std::optional<Reply>* reply);
  absl::Status Run(const ReduceSpec& reduce, BorrowedLane& lane, uint64_t num_items, std::optional<Reply>* reply);
  absl::Status Run(const CompactSpec& compact, BorrowedLane& lane, uint64_t num_items, std::optional<Reply>* reply);
  // The device memory that joins the pieces, allocated with the first of them.
  absl::Status MakeState(BorrowedLane& lane);
  // Copies between messages and staging, and counts the time.
  void CopyIn(const StagingBlock& block, std::string_view bytes);
  std::string CopyOut(const StagingBlock& block, uint64_t size_bytes);
  void AddHostCopy(std::chrono::steady_clock::time_point start);

  const Device& device_;
  const Spec spec_;
  const CallShape shape_;
  uint64_t reply_bytes_per_item_ = 0;  // At most; 0 for a reduce.
  uint64_t piece_items_ = 0;

  uint64_t items_checked_ = 0;  // Check's.

  // RunPiece's.
  uint64_t items_done_ = 0;
  uint64_t items_kept_ = 0;
  Buffer state_;  // Device: one element of carry, or one ReduceState.
  ReduceState reduced_;
  StageTimes device_times_;
  std::optional<int64_t> host_copy_ns_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CHUNK_PIPELINE_H_
