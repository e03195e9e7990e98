// The segments of a piece: where they begin, and how many elements of each are kept.
#include <algorithm>
#include <string_view>

#include "base/status.h"
#include "server/work/piece_runner.h"
#include "server/work/segment_offsets.h"

namespace prefixd {

absl::Status PieceRunner::FindSegments(BorrowedLane& lane, const Piece& piece, const StopSignal& stop) {
  if (work_->shape().has_offsets) num_offsets_ = piece.chunk.num_offsets;
  if (const auto& offsets = places_.offsets()) {
    PREFIXD_RETURN_IF_ERROR(
        CheckResidentOffsets(lane, offsets->data, offsets->num_items, piece.num_items, stop, "segment_offsets.array"));
  }
  if (!work_->shape().keys) return absl::OkStatus();
  const DType dtype = *work_->shape().keys;
  const std::byte* keys = nullptr;
  if (places_.keys()) {
    keys = places_.keys()->data;
  } else {
    PREFIXD_ASSIGN_OR_RETURN(
        keys, BringIn(lane, work_->shape().mask ? lane.indices : lane.mask, *piece.chunk.keys, /*first_byte=*/0,
                      piece.num_items * SizeOf(dtype), SizeOf(dtype), /*offset_bytes=*/0, /*direct=*/false));
  }
  PREFIXD_ASSIGN_OR_RETURN(runs_, FindKeyRuns(lane, dtype, keys, piece.num_items));
  num_offsets_ = runs_.num_offsets;
  keys_ = keys;
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> PieceRunner::BringInOffsets(BorrowedLane& lane, const Payload& offsets, bool direct) {
  if (!work_->shape().counts_segments) {
    // Coefficients have the block for what comes beside the items, and no indices come with them.
    return BringIn(lane, work_->shape().has_coefficients ? lane.indices : lane.mask, offsets, /*first_byte=*/0,
                   offsets.size(), sizeof(uint64_t), /*offset_bytes=*/0, direct);
  }
  // By way of the block for indices, which has none yet: there may be a mask, and offsets are needed when there are.
  PREFIXD_ASSIGN_OR_RETURN(own_offsets_, lane.lane->Allocate(offsets.size()));
  offsets.CopyTo(lane.indices.host.data(), 0, offsets.size());
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToDevice(own_offsets_.data(), lane.indices.host.data(), offsets.size()));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  return own_offsets_.data();
}

absl::Status PieceRunner::CountSegments(BorrowedLane& lane, const Outputs& outputs, uint64_t num_kept) {
  const uint64_t num_segments = num_offsets_ - 1;
  std::optional<Destination>& sink = places_.counts_sink();
  if (sink) PREFIXD_RETURN_IF_ERROR(sink->Prepare(*lane.lane));
  if (num_segments == 0) return absl::OkStatus();
  std::byte* to = nullptr;
  if (!sink) {
    PREFIXD_ASSIGN_OR_RETURN(counts_, lane.lane->Allocate(num_segments * sizeof(uint64_t)));
    to = counts_.data();
  } else if (num_segments <= sink->room().num_items) {
    to = sink->room().data;
  } else {
    return Error(absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", "counts_sink.array",
                 StrCat("there are ", num_segments, " runs of equal keys and the slice has room for ",
                        sink->room().num_items, ": name one that is long enough, or ask for a new array"));
  }
  PREFIXD_RETURN_IF_ERROR(
      lane.lane->CountSegments({.index_dtype = std::get<CompactSpec>(work_->operation()).KeptIndexDType(),
                                .indices = outputs.indices.data,
                                .num_indices = num_kept,
                                .offsets = offsets_,
                                .counts = reinterpret_cast<uint64_t*>(to),
                                .num_items = num_segments}));
  if (sink) return absl::OkStatus();
  return lane.lane->CopyToHost(lane.in.host.data(), to, num_segments * sizeof(uint64_t));  // What came in was read.
}

}  // namespace prefixd
