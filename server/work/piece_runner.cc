#include "server/work/piece_runner.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace prefixd {
namespace {

// Replies below this are copied: a block that is lent has to come back, which costs more.
constexpr uint64_t kMinLentBytes = uint64_t{16} << 10;

// A piece is a whole number of these, so that every piece but the last ends with a byte of a bit mask.
constexpr uint64_t kItemsPerMaskByte = 8;

uint64_t CountAt(const std::byte* scalar) {
  uint64_t count = 0;
  std::memcpy(&count, scalar, sizeof(count));
  return count;
}

}  // namespace

void AddScalar(const WorkShape& shape, const std::byte* scalar, WorkTotals* totals) {
  if (shape.is_counted) {
    totals->num_kept += CountAt(scalar);
  } else {
    std::memcpy(&totals->scalar.emplace(), scalar, sizeof(ReduceState));
  }
}

PieceRunner::PieceRunner(std::shared_ptr<const Work> work, CallShape shape)
    : work_(std::move(work)),
      shape_(shape),
      keeps_open_group_(shape == CallShape::kStream && work_->shape().depends_on_cuts),
      piece_items_(kMaxReplyPayloadBytes / work_->widest_bytes_per_item() / kItemsPerMaskByte * kItemsPerMaskByte),
      open_(work_->item_bytes()) {}

Piece PieceRunner::Cut(const Chunk& chunk, uint64_t first, bool ends) const {
  const uint64_t rest = chunk.values.size() / work_->item_bytes() - first;
  const uint64_t num_items = std::min(piece_items_, rest);
  // A declared length tells the end too. ChunkChecker has seen to it that no more comes.
  const bool is_declared_end = NumItemsOf(work_->spec()) == done_.totals.num_items + num_items;
  return {.chunk = chunk,
          .first = first,
          .num_items = num_items,
          .is_last = num_items == rest && (ends || is_declared_end)};
}

absl::Status PieceRunner::Run(BorrowedLane& lane, const Piece& piece, const StopSignal& stop,
                              std::optional<Reply>* reply) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  const WorkShape& shape = work_->shape();
  const bool touches_open_group = open_.num_items() > 0 || ClosedItems(piece) != piece.num_items;
  const bool direct = !touches_open_group && piece.num_items * work_->widest_bytes_per_item() <= lane.direct_bytes;
  const uint64_t open_before = open_.num_items();
  absl::Status status = Enqueue(lane, piece, direct);
  if (status.ok() && !direct) status = EnqueueCopiesOut(lane, piece, open_before);
  PREFIXD_RETURN_IF_ERROR(Settle(lane, std::move(status)));

  done_.totals.num_items += piece.num_items;
  const uint64_t kept_before = done_.totals.num_kept;
  if (shape.is_counted || (shape.scalar_bytes > 0 && piece.is_last)) {
    AddScalar(shape, lane.scalar.host.data(), &done_.totals);
  }
  if (!HasItems()) return absl::OkStatus();
  const uint64_t num_outputs = shape.is_counted ? done_.totals.num_kept - kept_before : piece.num_items;
  *reply = {.values = Take(lane, lane.values, num_outputs * shape.value_bytes),
            .indices = Take(lane, lane.indices, num_outputs * shape.index_bytes),
            .num_kept = done_.totals.num_kept};
  return absl::OkStatus();
}

absl::Status PieceRunner::RunEnd(BorrowedLane& lane, const StopSignal& stop) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  const std::byte* d_scalar = carry_.data();
  absl::Status status;
  if (open_.num_items() > 0) {
    d_scalar = lane.scalar.device.data();
    status = work_->Enqueue(*lane.lane, {.in = open_.data(),
                                         .scalar = lane.scalar.device.data(),
                                         .num_items = open_.num_items(),
                                         .first_item = done_.totals.num_items - open_.num_items(),
                                         .carry_in = has_carry_ ? carry_.data() : nullptr});
  }
  const uint64_t scalar_bytes = work_->shape().scalar_bytes;
  if (status.ok()) status = lane.lane->CopyToHost(lane.scalar.host.data(), d_scalar, scalar_bytes);
  PREFIXD_RETURN_IF_ERROR(Settle(lane, std::move(status)));
  AddScalar(work_->shape(), lane.scalar.host.data(), &done_.totals);
  return absl::OkStatus();
}

absl::Status PieceRunner::Settle(BorrowedLane& lane, absl::Status status) {
  // The blocks are the next task's from here on, so nothing may still be reading them.
  if (const absl::Status idle = lane.lane->Synchronize(); status.ok()) status = idle;
  done_.device += lane.lane->TakeStageTimes();
  return status;
}

uint64_t PieceRunner::ClosedItems(const Piece& piece) const {
  const uint64_t num_items = open_.num_items() + piece.num_items;
  return keeps_open_group_ && !piece.is_last ? OpenGroup::ClosedItems(num_items) : num_items;
}

absl::Status PieceRunner::BringIn(BorrowedLane& lane, const Piece& piece, bool direct, WorkArrays* arrays) {
  PREFIXD_RETURN_IF_ERROR(open_.CopyTo(*lane.lane, lane.in.device.data()));
  const uint64_t item_bytes = work_->item_bytes();
  PREFIXD_ASSIGN_OR_RETURN(arrays->in, BringIn(lane, lane.in, piece.chunk.values, piece.first * item_bytes,
                                               piece.num_items * item_bytes, item_bytes, open_.size_bytes(), direct));
  const std::optional<MaskKind> mask = work_->shape().mask;
  if (!mask) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(arrays->mask, BringIn(lane, lane.mask, *piece.chunk.mask, MaskBytes(*mask, piece.first),
                                                 MaskBytes(*mask, piece.num_items), /*alignment=*/1,
                                                 /*offset_bytes=*/0, direct));
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> PieceRunner::BringIn(BorrowedLane& lane, const StagingBlock& block,
                                                      const Payload& payload, uint64_t first_byte, uint64_t size_bytes,
                                                      uint64_t alignment, uint64_t offset_bytes, bool direct) {
  if (direct && lane.direct_bytes == DeviceInfo::kHostMemory) {
    const char* const found = payload.Find(first_byte, size_bytes);
    if (found != nullptr && reinterpret_cast<uintptr_t>(found) % alignment == 0) {
      return reinterpret_cast<const std::byte*>(found);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  payload.CopyTo(block.host.data(), first_byte, size_bytes);
  AddHostCopy(start);
  if (direct) return block.host.data();
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToDevice(block.device.data() + offset_bytes, block.host.data(), size_bytes));
  return block.device.data();
}

// The closed items run behind the carry of those before, and leave a carry. The open ones run behind that, for their
// output items alone: they will run again.
absl::Status PieceRunner::Enqueue(BorrowedLane& lane, const Piece& piece, bool direct) {
  const WorkShape& shape = work_->shape();
  const uint64_t num_items = open_.num_items() + piece.num_items;
  const uint64_t closed = ClosedItems(piece);
  const bool carries = shape.carry_bytes > 0 && !piece.is_last;
  if (carries && carry_.data() == nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(carry_, lane.lane->Allocate(shape.carry_bytes));
  }
  WorkArrays arrays = {.values = lane.values.data(direct),
                       .indices = lane.indices.data(direct),
                       .scalar = lane.scalar.data(direct),
                       .num_items = closed,
                       .first_item = done_.totals.num_items - open_.num_items()};
  PREFIXD_RETURN_IF_ERROR(BringIn(lane, piece, direct, &arrays));
  const std::byte* const in = arrays.in;
  if (closed > 0) {
    arrays.carry_in = has_carry_ ? carry_.data() : nullptr;
    arrays.carry_out = carries ? carry_.data() : nullptr;
    PREFIXD_RETURN_IF_ERROR(work_->Enqueue(*lane.lane, arrays));
    has_carry_ = carries;
  }
  if (closed < num_items && HasItems()) {
    arrays.in += closed * work_->item_bytes();
    arrays.values += closed * shape.value_bytes;
    arrays.num_items = num_items - closed;
    arrays.first_item += closed;
    arrays.carry_in = has_carry_ ? carry_.data() : nullptr;
    arrays.carry_out = nullptr;
    PREFIXD_RETURN_IF_ERROR(work_->Enqueue(*lane.lane, arrays));
  }
  return open_.Keep(*lane.lane, in, closed, num_items);
}

absl::Status PieceRunner::EnqueueCopiesOut(BorrowedLane& lane, const Piece& piece, uint64_t open_before) {
  const WorkShape& shape = work_->shape();
  const auto copy_out = [&](const StagingBlock& block, uint64_t first_byte, uint64_t size_bytes) {
    if (size_bytes == 0) return absl::OkStatus();
    return lane.lane->CopyToHost(block.host.data(), block.device.data() + first_byte, size_bytes);
  };
  if (shape.is_counted || piece.is_last) PREFIXD_RETURN_IF_ERROR(copy_out(lane.scalar, 0, shape.scalar_bytes));
  uint64_t num_outputs = piece.num_items;
  if (shape.is_counted) {  // Only what was kept crosses the bus.
    PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
    num_outputs = CountAt(lane.scalar.host.data());
  }
  PREFIXD_RETURN_IF_ERROR(copy_out(lane.values, open_before * shape.value_bytes, num_outputs * shape.value_bytes));
  return copy_out(lane.indices, 0, num_outputs * shape.index_bytes);
}

TaskSize PieceRunner::SizeOfTask(uint64_t num_items) const {
  if (work_->is_yardstick()) return TaskSize::kYardstick;  // A few items may take it long.
  const uint64_t size_bytes = (open_.num_items() + num_items) * work_->widest_bytes_per_item();
  return size_bytes <= kMaxSmallBytes ? TaskSize::kSmall : TaskSize::kLarge;
}

bool PieceRunner::IsBatchable(const Piece& piece) const {
  return shape_ == CallShape::kUnary && piece.is_last && done_.totals.num_items == 0 &&
         SizeOfTask(piece.num_items) == TaskSize::kSmall;
}

void PieceRunner::Describe(Result* result) const {
  Timing& timing = result->timing;
  timing.host_copy_ns = done_.host_copy_ns;
  timing.host_to_device_ns = done_.device.host_to_device_ns;
  timing.kernel_ns = done_.device.kernel_ns;
  timing.device_to_host_ns = done_.device.device_to_host_ns;
  timing.launches = done_.device.launches;
  timing.num_bytes = done_.device.num_bytes;
  timing.algorithm = AlgorithmOf(work_->spec());
  timing.num_items = done_.totals.num_items;
  timing.batch_size = done_.batch_size;
  result->dtype = OutputOf(work_->spec());
  work_->Describe(done_.totals, result);
}

Payload PieceRunner::Take(BorrowedLane& lane, StagingBlock& block, uint64_t size_bytes) {
  if (size_bytes == 0) return {};
  const std::string_view bytes(reinterpret_cast<const char*>(block.host.data()), size_bytes);
  if (size_bytes >= kMinLentBytes) {
    if (Payload::Owner lent = lane.replies->Exchange(&block.host)) return Payload(bytes, std::move(lent));
  }
  const auto start = std::chrono::steady_clock::now();
  Payload copy{std::string(bytes)};
  AddHostCopy(start);
  return copy;
}

void PieceRunner::AddHostCopy(std::chrono::steady_clock::time_point start) {
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
  done_.host_copy_ns = done_.host_copy_ns.value_or(0) + elapsed.count();
}

}  // namespace prefixd
