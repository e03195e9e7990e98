// Rows that come in pieces. Each is an array of its own, so what joins pieces, a carry and an open group, is of the row
// that has begun, and begins anew with the next one.
#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "server/work/piece_runner.h"

namespace prefixd {

Piece PieceRunner::CutRows(const Chunk& chunk, uint64_t first) const {
  const uint64_t row_items = *work_->shape().row_items;
  const uint64_t most = std::min(piece_items_, chunk.num_items - first);
  const uint64_t begun = Position();
  if (begun == 0 && most >= row_items) {
    return {.chunk = chunk, .first = first, .num_items = most - most % row_items, .is_last = true};
  }
  const uint64_t num_items = std::min(most, row_items - begun);
  return {.chunk = chunk,
          .first = first,
          .num_items = num_items,
          .is_last = begun + num_items == row_items,
          .is_part = true};
}

absl::Status PieceRunner::StoreRowValue(BorrowedLane& lane) {
  WorkTotals row = {.num_items = *work_->shape().row_items};
  AddScalar(work_->shape(), lane.scalar.host.data(), &row);
  Result result;
  work_->Describe(row, &result);
  const uint64_t value_bytes = work_->shape().value_bytes;
  std::memcpy(lane.values.host.data(), &result.value->bits, value_bytes);
  std::optional<Destination>& sink = places_.values_sink();
  if (!sink) return absl::OkStatus();
  return Settle(lane, lane.lane->CopyToDevice(sink->room().data + num_outputs_ * value_bytes, lane.values.host.data(),
                                              value_bytes));
}

uint64_t PieceRunner::MostRowValueBytes() const {
  const uint64_t most = kMaxReplyPayloadBytes / inline_value_bytes_;
  return (num_items_ ? std::min(most, *num_items_ / *work_->shape().row_items) : most) * inline_value_bytes_;
}

}  // namespace prefixd
