// Runs one request on borrowed lanes, piece by piece: copy in, run, copy out. A piece fits a staging block and a reply.
// What is resident is worked on where it is: a request that has nothing inline is one piece, whole. Nothing is copied
// in where the device works in the host's memory and the message has the piece in one aligned part. What joins the
// pieces, a carry and the open group, stays on the device, so that an array of any length passes through in bounded
// memory.
//
// Threads:   one at a time. Whoever has a piece run hands the runner over with it, and gets it back when it has run.
// Ownership: the carry and the open group are the runner's; the blocks of a lane are lent to it for one task. A piece
//            keeps the slices of its message until it is destroyed, after the kernel: a task that has run is settled.
#ifndef PREFIXD_SERVER_WORK_PIECE_RUNNER_H_
#define PREFIXD_SERVER_WORK_PIECE_RUNNER_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "server/arrays/places.h"
#include "server/call/stop_signal.h"
#include "server/lanes/lane_pool.h"
#include "server/request.h"
#include "server/work/key_runs.h"
#include "server/work/open_group.h"
#include "server/work/scan_carry.h"
#include "server/work/work.h"

namespace prefixd {

// Arrays up to here take a lane about as long as a launch does.
inline constexpr uint64_t kMaxSmallBytes = uint64_t{64} << 10;

// A part of a chunk: what one borrowed lane runs.
struct Piece {
  Chunk chunk;
  uint64_t first = 0;  // The first of the chunk's elements that belongs to the piece.
  uint64_t num_items = 0;
  bool is_last = false;  // The whole array, or row, ends with it. May be false where that is not known yet.
  bool is_part = false;  // As in WorkArrays.

  // What it takes grows with that: items, or segments.
  uint64_t size() const { return std::max(num_items, chunk.num_offsets); }
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
  // places: of what is resident. carry_in: the array goes on where another call ended. returns_carry: another one will
  // go on where this one ends, with what Describe says.
  PieceRunner(std::shared_ptr<const Work> work, CallShape shape, Places places = {},
              std::optional<ScanCarry> carry_in = {}, bool returns_carry = false);

  const Work& work() const { return *work_; }
  const Places& places() const { return places_; }

  // Whether items pass through a lane's blocks, in or out. Else the whole array is one piece.
  bool IsStaged() const;
  // Whether the whole array has to be one piece because of what its reply has beside items.
  bool RepliesWithCounts() const { return work_->shape().counts_segments && !places_.counts_sink(); }
  bool IsOnePiece(uint64_t num_items) const { return num_items <= piece_items_; }

  // The piece of a checked chunk that begins at its element `first`. ends: nothing comes after the chunk.
  Piece Cut(const Chunk& chunk, uint64_t first, bool ends) const;

  // Runs the next piece. Sets *reply where output items go inline.
  // Blocks on the device. On return the lane is idle, also after an error.
  // Errors: those of the lane, and of `stop`, which is asked before anything is enqueued.
  absl::Status Run(BorrowedLane& lane, const Piece& piece, const StopSignal& stop, std::optional<Reply>* reply);

  // Whether RunEnd has to be run once everything came: no piece was the last, and the result is still on the device, or
  // not yet in its array.
  bool NeedsEnd() const {
    if (returns_carry_) return !carry_out_;
    if (work_->shape().HasItems()) return false;
    return (done_.totals.num_items > 0 && !done_.totals.scalar) || (places_.values_sink() && !is_value_stored_);
  }
  // Replies may be made that no message pays for: those to values, offsets or keys that are resident.
  bool HasUnpaidReplies() const {
    return RepliesWithItems() && (places_.values() || places_.offsets() || places_.keys() || !work_->shape().has_input);
  }
  // As Run, of no items.
  absl::Status RunEnd(BorrowedLane& lane, const StopSignal& stop);

  // Memory for what stays between two pieces: the items of an open group, and the values of rows that go out at the
  // end. At most 2 * kMaxOpenGroupBytes; 0: nothing stays.
  uint64_t KeptBytes() const {
    const uint64_t open =
        keeps_open_group_ ? kGroupItems * work_->item_bytes() * (work_->shape().has_coefficients ? 2 : 1) : 0;
    return open + (CollectsValues() ? MostRowValueBytes() : 0);
  }

  // What the piece of so many items, or segments where there are more of these, takes of a lane; with the open group
  // before it. The end has none.
  TaskSize SizeOfTask(uint64_t num_items) const;
  int64_t EstimateNs(uint64_t num_items) const { return work_->EstimateNs(open_.num_items() + num_items, !IsStaged()); }

  // Whether a batch may run the piece, in the place of Run: the whole array, and a small one.
  bool IsBatchable(const Piece& piece) const;
  // The batch has run it.
  void Accept(const WorkDone& done) { done_ = done; }

  // Sets the parts of the result that come from the work: value, index, count kept, device times.
  void Describe(Result* result) const;

  // All has run, and well: gives arrays that were made their names, and says so in the result. Errors: the store's.
  absl::Status Publish(Result* result);

 private:
  // Whether there are replies with output items, or with their count.
  bool RepliesWithItems() const {
    return work_->shape().HasItems() && !CollectsValues() &&
           (inline_value_bytes_ > 0 || inline_index_bytes_ > 0 || RepliesWithCounts() ||
            (!places_.values_sink() && !places_.indices_sink()));
  }
  // Elements that the result has.
  uint64_t NumOutputs() const {
    if (!work_->shape().HasItems()) return 1;
    return work_->shape().is_counted ? done_.totals.num_kept : work_->NumOutputs(done_.totals.num_items, num_offsets_);
  }

  // What the piece adds to it, where that is known before it runs.
  uint64_t NumOutputs(const Piece& piece) const {
    if (!piece.is_part) return work_->NumOutputs(piece.num_items, num_offsets_);
    return work_->shape().is_reduced ? (piece.is_last ? 1 : 0) : piece.num_items;
  }

  // ---- Rows (piece_rows.cc)
  // The next piece of rows: the rest of one that has begun, whole rows, or the beginning of one.
  Piece CutRows(const Chunk& chunk, uint64_t first) const;
  // Items of the array, or of the row that has begun, which were run.
  uint64_t Position() const {
    const std::optional<uint64_t> row_items = work_->shape().row_items;
    return row_items ? done_.totals.num_items % *row_items : done_.totals.num_items;
  }
  // A part of a row leaves a state, and no value.
  bool IsReducedPart(const Piece& piece) const { return piece.is_part && work_->shape().is_reduced; }
  // The last part of a row has left its state on the host: puts its value where a kernel puts the values of whole rows.
  absl::Status StoreRowValue(BorrowedLane& lane);
  // Whether the values of rows wait for the end, because a stream of them has one reply. At most so many bytes.
  bool CollectsValues() const {
    return shape_ == CallShape::kStream && work_->shape().is_reduced && work_->shape().row_items &&
           inline_value_bytes_ > 0;
  }
  uint64_t MostRowValueBytes() const;

  // Where a piece's output items are put by the kernel, and where they belong.
  struct Outputs {
    struct Part {
      std::byte* data = nullptr;
      std::byte* to = nullptr;  // Null: into a reply.
      uint64_t room = 0;        // Elements, at `to`.
      Buffer scratch;
      bool IsElsewhere() const { return to != nullptr && data != to; }
    };
    Part values;
    Part indices;
  };
  // Whether the lane's blocks on the host will do, with so many items in them.
  bool FitsDirect(const BorrowedLane& lane, uint64_t num_items) const;
  absl::Status PlaceOutputs(BorrowedLane& lane, const Piece& piece, bool direct, Outputs* outputs);
  absl::Status MoveKept(BorrowedLane& lane, const Outputs::Part& part, uint64_t num_kept, uint64_t item_bytes,
                        std::string_view field);
  absl::Status ConcludeSinks(BorrowedLane& lane);
  // Learns how many segments there are: by resident offsets, which are checked, or by keys. Waits for the lane; after
  // an error it may have work.
  absl::Status FindSegments(BorrowedLane& lane, const Piece& piece, const StopSignal& stop);
  // Brings offsets in that are in the message.
  absl::StatusOr<const std::byte*> BringInOffsets(BorrowedLane& lane, const Payload& offsets, bool direct);
  // Counts how many of those that were kept are of each segment, into an array or into a block on the host.
  absl::Status CountSegments(BorrowedLane& lane, const Outputs& outputs, uint64_t num_kept);
  // Items of the open group, also before they have come to the device.
  uint64_t NumOpenItems() const {
    return carry_in_ ? carry_in_->open_items.size() / work_->item_bytes() : open_.num_items();
  }
  // Brings in what another call left, once.
  absl::Status Resume(BorrowedLane& lane);
  // Takes a reduce's scalar, which no piece left on the host.
  absl::Status TakeScalar(BorrowedLane& lane);
  // Puts a reduce's value, which the host knows, into its array, if it has one.
  absl::Status StoreValue(BorrowedLane& lane);
  // Takes what another call will go on with.
  absl::Status TakeCarry(BorrowedLane& lane);
  // Items of open group and piece that are run for good: up to a group's end, or to the array's.
  uint64_t ClosedItems(const Piece& piece) const;
  // Sets where the kernel finds the open group with the piece behind it, and what comes beside them.
  absl::Status BringIn(BorrowedLane& lane, const Piece& piece, bool direct, WorkArrays* arrays);
  // Where the items of the open group are, with those of the piece behind them: resident ones, or of the message.
  absl::StatusOr<const std::byte*> BringInItems(BorrowedLane& lane, const Piece& piece, bool direct,
                                                const std::optional<DeviceItems>& resident, const Payload& payload,
                                                const OpenGroup& open, const StagingBlock& block);
  // The payload's bytes, of which each item has `alignment`: where they are, or in the block behind `offset_bytes`.
  absl::StatusOr<const std::byte*> BringIn(BorrowedLane& lane, const StagingBlock& block, const Payload& payload,
                                           uint64_t first_byte, uint64_t size_bytes, uint64_t alignment,
                                           uint64_t offset_bytes, bool direct);
  absl::Status Enqueue(BorrowedLane& lane, const Piece& piece, bool direct, Outputs* outputs);
  absl::Status EnqueueCopiesOut(BorrowedLane& lane, const Piece& piece, uint64_t open_before, bool direct,
                                const Outputs& outputs);
  // Ends a lane's task: waits for what is enqueued and takes its times.
  absl::Status Settle(BorrowedLane& lane, absl::Status status);
  // The first size_bytes of a block: the block itself, for which the lane gets another, or a copy.
  Payload Take(BorrowedLane& lane, StagingBlock& block, uint64_t size_bytes);
  void AddHostCopy(std::chrono::steady_clock::time_point start);

  const std::shared_ptr<const Work> work_;
  const CallShape shape_;
  Places places_;
  const uint64_t inline_value_bytes_;  // What an output item takes in replies.
  const uint64_t inline_index_bytes_;
  const std::optional<uint64_t> num_items_;  // The whole array's, if it is known.
  const uint64_t first_item_;                // The first one's index, where other calls had those before.
  std::optional<ScanCarry> carry_in_;        // Until the first piece runs.
  const bool returns_carry_;
  std::optional<std::string> carry_out_;
  const bool keeps_open_group_;
  const uint64_t piece_items_;  // At most, of one piece.

  OpenGroup open_;
  OpenGroup open_coefficients_;  // Those of the same items, if they have some.
  Buffer carry_;                 // Device: of the items before the open group. Allocated when there is one.
  bool has_carry_ = false;
  bool is_value_stored_ = false;
  uint64_t num_offsets_ = 1;  // How many a segmented operation has.
  KeyRuns runs_;              // Its offsets, if it has keys:
  const std::byte* keys_ = nullptr;
  const uint64_t* offsets_ = nullptr;  // On the device.
  Buffer own_offsets_;                 // Those in the message, where no block is free for them.
  Buffer counts_;
  uint64_t num_outputs_ = 0;  // All pieces that were run have so many.
  std::string row_values_;    // Those that wait for the end.
  WorkDone done_;
};

// The scalar that a kernel left at `scalar`, added to what there is.
void AddScalar(const WorkShape& shape, const std::byte* scalar, WorkTotals* totals);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_PIECE_RUNNER_H_
