// Runs one request on borrowed lanes, piece by piece: copy in, run, copy out. A piece fits a staging block and a reply.
// Nothing is copied in where the device works in the host's memory and the message has the piece in one aligned part.
// What joins the pieces, a carry and the open group, stays on the device, so that an array of any length passes through
// in bounded memory.
//
// Threads:   one at a time. Whoever has a piece run hands the runner over with it, and gets it back when it has run.
// Ownership: the carry and the open group are the runner's; the blocks of a lane are lent to it for one task. A piece
//            keeps the slices of its message until it is destroyed, after the kernel: a task that has run is settled.
#ifndef PREFIXD_SERVER_WORK_PIECE_RUNNER_H_
#define PREFIXD_SERVER_WORK_PIECE_RUNNER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "server/call/stop_signal.h"
#include "server/lanes/lane_pool.h"
#include "server/request.h"
#include "server/work/open_group.h"
#include "server/work/work.h"

namespace prefixd {

// Arrays up to here take a lane about as long as a launch does.
inline constexpr uint64_t kMaxSmallBytes = uint64_t{64} << 10;

// A part of a chunk: what one borrowed lane runs.
struct Piece {
  Chunk chunk;
  uint64_t first = 0;  // The first of the chunk's elements that belongs to the piece.
  uint64_t num_items = 0;
  bool is_last = false;  // The whole array ends with it. May be false where that is not known yet.
};

// What a lane did for one request.
struct WorkDone {
  WorkTotals totals;
  StageTimes device;                    // A batch has one for all its requests, and so has the copy.
  std::optional<int64_t> host_copy_ns;  // Between messages and blocks.
  uint32_t batch_size = 1;              // Requests that shared the launch.
};

class PieceRunner {
 public:
  PieceRunner(std::shared_ptr<const Work> work, CallShape shape);

  const Work& work() const { return *work_; }

  // The piece of a checked chunk that begins at its element `first`. ends: nothing comes after the chunk.
  Piece Cut(const Chunk& chunk, uint64_t first, bool ends) const;

  // Runs the next piece. Sets *reply where the work has output items.
  // Blocks on the device. On return the lane is idle, also after an error.
  // Errors: those of the lane, and of `stop`, which is asked before anything is enqueued.
  absl::Status Run(BorrowedLane& lane, const Piece& piece, const StopSignal& stop, std::optional<Reply>* reply);

  // Whether RunEnd has to be run once everything came: no piece was the last, and the result is still on the device.
  bool NeedsEnd() const { return !HasItems() && done_.totals.num_items > 0 && !done_.totals.scalar; }
  // As Run, of no items.
  absl::Status RunEnd(BorrowedLane& lane, const StopSignal& stop);

  // Device memory that the items between two pieces take; 0: none are kept.
  uint64_t open_group_bytes() const { return keeps_open_group_ ? kGroupItems * work_->item_bytes() : 0; }

  // What the piece of so many items, or the end, which has none, takes of a lane; with the open group before it.
  TaskSize SizeOfTask(uint64_t num_items) const;
  int64_t EstimateNs(uint64_t num_items) const { return work_->EstimateNs(open_.num_items() + num_items); }

  // Whether a batch may run the piece, in the place of Run: the whole array, and a small one.
  bool IsBatchable(const Piece& piece) const;
  // The batch has run it.
  void Accept(const WorkDone& done) { done_ = done; }

  // Sets the parts of the result that come from the work: value, index, count kept, device times.
  void Describe(Result* result) const;

 private:
  // Whether there are replies with items, and not only a scalar at the end.
  bool HasItems() const { return work_->shape().value_bytes > 0 || work_->shape().is_counted; }
  // Items of open group and piece that are run for good: up to a group's end, or to the array's.
  uint64_t ClosedItems(const Piece& piece) const;
  // Sets where the kernel finds the open group with the piece behind it, and the mask.
  absl::Status BringIn(BorrowedLane& lane, const Piece& piece, bool direct, WorkArrays* arrays);
  // The payload's bytes, of which each item has `alignment`: where they are, or in the block behind `offset_bytes`.
  absl::StatusOr<const std::byte*> BringIn(BorrowedLane& lane, const StagingBlock& block, const Payload& payload,
                                           uint64_t first_byte, uint64_t size_bytes, uint64_t alignment,
                                           uint64_t offset_bytes, bool direct);
  absl::Status Enqueue(BorrowedLane& lane, const Piece& piece, bool direct);
  absl::Status EnqueueCopiesOut(BorrowedLane& lane, const Piece& piece, uint64_t open_before);
  // Ends a lane's task: waits for what is enqueued and takes its times.
  absl::Status Settle(BorrowedLane& lane, absl::Status status);
  // The first size_bytes of a block: the block itself, for which the lane gets another, or a copy.
  Payload Take(BorrowedLane& lane, StagingBlock& block, uint64_t size_bytes);
  void AddHostCopy(std::chrono::steady_clock::time_point start);

  const std::shared_ptr<const Work> work_;
  const CallShape shape_;
  const bool keeps_open_group_;
  const uint64_t piece_items_;  // At most, of one piece.

  OpenGroup open_;
  Buffer carry_;  // Device: of the items before the open group. Allocated when there is one.
  bool has_carry_ = false;
  WorkDone done_;
};

// The scalar that a kernel left at `scalar`, added to what there is.
void AddScalar(const WorkShape& shape, const std::byte* scalar, WorkTotals* totals);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_PIECE_RUNNER_H_
