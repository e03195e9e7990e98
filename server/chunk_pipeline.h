// The work of one request: checks each chunk, cuts it into pieces that fit a staging block and a reply, and runs each
// piece through a lane (copy in, run, copy out). What joins the pieces (the carry of a scan, the state of a reduce)
// stays on the device between chunks, so an array of any length passes through in bounded memory.
//
// Bits do not depend on how the caller cut the array. kernels/NUMERICS.md lets an array be cut, without new bits, after
// whole groups only: so the items since the last whole group (the open group) stay on the device too, and are run again
// in front of the next piece. Every item's result is returned with its own piece all the same.
//
// Threads: Check by one thread and the others by another at the same time, each for one chunk at a time, in the same
//          order. Finish and Describe after both.
#ifndef PREFIXD_SERVER_CHUNK_PIPELINE_H_
#define PREFIXD_SERVER_CHUNK_PIPELINE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "proto/payload.h"
#include "server/lane_pool.h"
#include "server/request.h"
#include "server/stop_signal.h"

namespace prefixd {

enum class CallShape { kUnary, kStream };

// Arrays up to here take a lane about as long as a launch does.
inline constexpr uint64_t kMaxSmallBytes = uint64_t{64} << 10;

// A part of a chunk: what one borrowed lane runs.
struct Piece {
  Chunk chunk;
  uint64_t first = 0;  // Of the chunk's elements.
  uint64_t num_items = 0;
  bool is_last = false;  // Of the whole array. May be false where that is not known yet.
};

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

  // The piece of a checked chunk that begins at its element `first`. ends: nothing comes after the chunk.
  Piece Cut(const Chunk& chunk, uint64_t first, bool ends) const;

  // Runs a piece. Sets *reply, but not for a reduce. The pieces of a chunk, and the chunks, are run in order.
  // Blocks on the device: for lane threads. On return the lane is idle, also after an error.
  // Errors: those of the lane, and of `stop`, which is asked before anything is enqueued.
  absl::Status RunPiece(BorrowedLane& lane, const Piece& piece, const StopSignal& stop, std::optional<Reply>* reply);

  // Whether RunEnd has to be run once everything came: no piece was the last, and the result is still on the device.
  bool NeedsEnd() const { return spec_.primitive() == Primitive::kReduce && items_done_ > 0 && !reduced_; }
  // As RunPiece, of no items.
  absl::Status RunEnd(BorrowedLane& lane, const StopSignal& stop);

  // What the piece of so many items, or the end, which has none, takes of a lane; with the open group before it.
  TaskSize SizeOfTask(uint64_t num_items) const;

  // Whether a batch may run the piece, in the place of RunPiece: the whole array, and a small one.
  bool IsBatchable(const Piece& piece) const;
  // What a batch made of it.
  struct BatchShare {
    uint64_t num_items = 0;
    uint64_t num_kept = 0;     // Of a compact.
    ReduceState reduced;       // Of a reduce.
    StageTimes device;         // Of the whole batch.
    int64_t host_copy_ns = 0;  // Of the whole batch.
    uint32_t size = 1;         // Requests.
  };
  void AcceptShare(const BatchShare& share);

  // Checks that the whole array came. Errors: INVALID_ARGUMENT (COUNT_MISMATCH).
  absl::Status Finish() const;

  const Spec& spec() const { return spec_; }

  // Sets the parts of the result that come from the work: value, index, count kept, device times.
  void Describe(Result* result) const;

 private:
  ChunkPipeline(const Device& device, const Spec& spec, CallShape shape);

  // Where a piece's bytes are while it runs: in the blocks' device memory, or, where that is faster, in their host
  // memory at once.
  struct Place {
    bool direct = false;
    std::byte* Of(const StagingBlock& block) const { return (direct ? block.host : block.device).data(); }
  };

  // Items of open group and piece that are run for good: up to a group's end, or to the array's.
  uint64_t ClosedItems(const Piece& piece) const;
  absl::Status CopyIn(BorrowedLane& lane, const Piece& piece);
  absl::Status CopyIn(BorrowedLane& lane, const StagingBlock& block, const Payload& payload, uint64_t first_byte,
                      uint64_t size_bytes, uint64_t device_offset_bytes);
  absl::Status RunAs(const ScanSpec& scan, BorrowedLane& lane, const Piece& piece, std::optional<Reply>* reply);
  absl::Status RunAs(const ReduceSpec& reduce, BorrowedLane& lane, const Piece& piece, std::optional<Reply>* reply);
  absl::Status RunAs(const CompactSpec& compact, BorrowedLane& lane, const Piece& piece, std::optional<Reply>* reply);
  // Reduces the state before the open group and num_items from `in` on, which begin at element first_item of the whole
  // array, into *state.
  absl::Status ReduceInto(void* state, const ReduceSpec& reduce, BorrowedLane& lane, const void* in, uint64_t num_items,
                          uint64_t first_item);
  // Waits for the state of the whole array in the scalar block, and reads it.
  absl::Status ReadState(BorrowedLane& lane);
  // The device memory that joins the pieces, allocated with the first of them.
  absl::Status MakeState(BorrowedLane& lane);
  // Keeps what comes after the closed ones of num_items as the open group.
  absl::Status KeepOpen(BorrowedLane& lane, const std::byte* in, uint64_t closed, uint64_t num_items);
  // Ends a lane's task: waits for what is enqueued and takes its times.
  absl::Status Settle(BorrowedLane& lane, absl::Status status);
  // The first size_bytes of a block: the block itself, for which the lane gets another, or a copy.
  Payload Take(BorrowedLane& lane, StagingBlock& block, uint64_t size_bytes);
  void AddHostCopy(std::chrono::steady_clock::time_point start);

  const Device& device_;
  const Spec spec_;
  const CallShape shape_;
  const bool has_open_group_;          // Cuts inside a group would show in the bits.
  uint64_t reply_bytes_per_item_ = 0;  // At most; 0 for a reduce.
  uint64_t piece_items_ = 0;

  uint64_t items_checked_ = 0;  // Check's.

  // The lane's.
  Place place_;  // Of the piece that is being run.
  uint64_t items_done_ = 0;
  uint64_t items_kept_ = 0;
  bool has_carry_ = false;
  Buffer state_;  // Device: one element of carry, or one ReduceState; of the items before the open group.
  Buffer open_;   // Device: the open group. Allocated when there is one.
  uint64_t open_items_ = 0;
  std::optional<ReduceState> reduced_;  // Of the whole array.
  StageTimes device_times_;
  std::optional<int64_t> host_copy_ns_;
  uint32_t batch_size_ = 1;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CHUNK_PIPELINE_H_
