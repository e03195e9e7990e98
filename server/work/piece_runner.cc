#include "server/work/piece_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
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

// What goes in, where many values come out, which ChunkChecker has counted.
uint64_t StagedBytesPerItem(const Work& work) {
  return work.shape().is_reduced ? work.item_bytes() : work.widest_bytes_per_item();
}

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

PieceRunner::PieceRunner(std::shared_ptr<const Work> work, CallShape shape, Places places,
                         std::optional<ScanCarry> carry_in, bool returns_carry)
    : work_(std::move(work)),
      shape_(shape),
      places_(std::move(places)),
      inline_value_bytes_(places_.values_sink() ? 0 : work_->shape().value_bytes),
      inline_index_bytes_(places_.indices_sink() ? 0 : work_->shape().index_bytes),
      num_items_(places_.num_items() ? places_.num_items() : NumItemsOf(work_->operation())),
      first_item_(carry_in ? carry_in->num_items : 0),
      carry_in_(std::move(carry_in)),
      returns_carry_(returns_carry),
      // Values that are resident are cut at groups' ends, unless the array begins or ends inside one.
      keeps_open_group_(work_->shape().depends_on_cuts && ((shape == CallShape::kStream && !places_.values()) ||
                                                           carry_in_.has_value() || returns_carry_)),
      // The values of resident items fit where the items would not.
      piece_items_(IsStaged() && !(places_.values() && work_->shape().is_reduced)
                       ? kMaxReplyPayloadBytes / StagedBytesPerItem(*work_) / kItemsPerMaskByte * kItemsPerMaskByte
                       : std::numeric_limits<uint64_t>::max()),
      open_(work_->item_bytes()),
      open_coefficients_(work_->item_bytes()) {
  // So that pieces of resident values are whole groups, whatever their type: the wide ones are a group, others several.
  static_assert(kMaxReplyPayloadBytes % (kGroupItems * sizeof(uint64_t)) == 0);
}

bool PieceRunner::IsStaged() const {
  const WorkShape& shape = work_->shape();
  const bool brings_in = (shape.has_input && !places_.values()) || (shape.mask && !places_.mask());
  return brings_in || inline_value_bytes_ > 0 || inline_index_bytes_ > 0;
}

Piece PieceRunner::Cut(const Chunk& chunk, uint64_t first, bool ends) const {
  if (work_->shape().row_items) return CutRows(chunk, first);
  const uint64_t rest = chunk.num_items - first;
  uint64_t num_items = std::min(piece_items_, rest);
  if (places_.values() && keeps_open_group_) {  // A group that is open is filled up by itself; whole ones run as one.
    const uint64_t open = NumOpenItems();
    if (open > 0) {
      num_items = std::min(num_items, kGroupItems - open);
    } else if (num_items >= kGroupItems) {
      num_items = OpenGroup::ClosedItems(num_items);
    }
  }
  // A known length tells the end too. ChunkChecker has seen to it that no more comes.
  const bool is_declared_end = num_items_ == done_.totals.num_items + num_items;
  const bool is_last = !returns_carry_ && num_items == rest && (ends || is_declared_end);
  if (!work_->shape().has_initial || (is_last && num_outputs_ == 0 && num_items < piece_items_)) {
    return {.chunk = chunk, .first = first, .num_items = num_items, .is_last = is_last};
  }
  // The result of an array without elements is the initial value, which stands in front of the others.
  if (num_outputs_ == 0) return {.chunk = chunk, .first = first, .num_items = 0, .is_last = true};
  return {.chunk = chunk, .first = first, .num_items = num_items, .is_last = is_last, .is_part = true};
}

absl::Status PieceRunner::Run(BorrowedLane& lane, const Piece& piece, const StopSignal& stop,
                              std::optional<Reply>* reply) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  PREFIXD_RETURN_IF_ERROR(Resume(lane));
  const WorkShape& shape = work_->shape();
  if (absl::Status found = FindSegments(lane, piece, stop); !found.ok()) return Settle(lane, std::move(found));
  const bool touches_open_group = open_.num_items() > 0 || ClosedItems(piece) != piece.num_items;
  const bool direct = !touches_open_group && FitsDirect(lane, std::max(piece.num_items, piece.chunk.num_offsets));
  const uint64_t open_before = open_.num_items();
  const uint64_t kept_before = done_.totals.num_kept;
  Outputs outputs;
  absl::Status status = Enqueue(lane, piece, direct, &outputs);
  if (status.ok()) status = EnqueueCopiesOut(lane, piece, open_before, direct, outputs);
  PREFIXD_RETURN_IF_ERROR(Settle(lane, std::move(status)));

  done_.totals.num_items += piece.num_items;
  if (shape.is_counted || (shape.scalar_bytes > 0 && piece.is_last)) {
    AddScalar(shape, lane.scalar.host.data(), &done_.totals);
  }
  if (piece.is_last) PREFIXD_RETURN_IF_ERROR(shape.HasUnknownLength() ? ConcludeSinks(lane) : StoreValue(lane));
  if (piece.is_last && IsReducedPart(piece)) PREFIXD_RETURN_IF_ERROR(StoreRowValue(lane));
  const uint64_t num_outputs = shape.is_counted ? done_.totals.num_kept - kept_before : NumOutputs(piece);
  num_outputs_ += num_outputs;
  if (CollectsValues()) {
    row_values_.append(reinterpret_cast<const char*>(lane.values.host.data()), num_outputs * inline_value_bytes_);
  }
  if (!RepliesWithItems()) return absl::OkStatus();
  *reply = {.values = Take(lane, lane.values, num_outputs * inline_value_bytes_),
            .indices = Take(lane, lane.indices, num_outputs * inline_index_bytes_),
            .num_kept = done_.totals.num_kept};
  if (RepliesWithCounts()) {
    const auto* const counts = reinterpret_cast<const char*>(lane.in.host.data());
    (*reply)->counts = Payload(std::string(counts, (num_offsets_ - 1) * sizeof(uint64_t)));
  }
  return absl::OkStatus();
}

absl::Status PieceRunner::RunEnd(BorrowedLane& lane, const StopSignal& stop) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  if (returns_carry_) return TakeCarry(lane);
  if (done_.totals.num_items > 0 && !done_.totals.scalar) PREFIXD_RETURN_IF_ERROR(TakeScalar(lane));
  return StoreValue(lane);
}

absl::Status PieceRunner::TakeScalar(BorrowedLane& lane) {
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

absl::Status PieceRunner::StoreValue(BorrowedLane& lane) {
  std::optional<Destination>& sink = places_.values_sink();
  if (work_->shape().HasItems() || !sink) return absl::OkStatus();
  PREFIXD_RETURN_IF_ERROR(sink->Prepare(*lane.lane));
  Result result;
  work_->Describe(done_.totals, &result);
  const uint64_t value_bytes = SizeOf(result.dtype);
  std::memcpy(lane.scalar.host.data(), &result.value->bits, value_bytes);
  is_value_stored_ = true;
  return Settle(lane, lane.lane->CopyToDevice(sink->room().data, lane.scalar.host.data(), value_bytes));
}

absl::Status PieceRunner::Resume(BorrowedLane& lane) {
  if (!carry_in_) return absl::OkStatus();
  const ScanCarry carry = *std::move(carry_in_);
  carry_in_.reset();
  absl::Status status;
  if (!carry.value.empty()) {
    PREFIXD_ASSIGN_OR_RETURN(carry_, lane.lane->Allocate(work_->shape().carry_bytes));
    std::memcpy(lane.scalar.host.data(), carry.value.data(), carry.value.size());
    status = lane.lane->CopyToDevice(carry_.data(), lane.scalar.host.data(), carry.value.size());
    has_carry_ = true;
  }
  if (status.ok() && !carry.open_items.empty()) {  // A scan has no use for the masks' block.
    std::memcpy(lane.mask.host.data(), carry.open_items.data(), carry.open_items.size());
    status = open_.Load(*lane.lane, lane.mask.host.data(), carry.open_items.size() / work_->item_bytes());
  }
  if (status.ok() && !carry.open_coefficients.empty()) {
    std::memcpy(lane.indices.host.data(), carry.open_coefficients.data(), carry.open_coefficients.size());
    status = open_coefficients_.Load(*lane.lane, lane.indices.host.data(),
                                     carry.open_coefficients.size() / work_->item_bytes());
  }
  return Settle(lane, std::move(status));
}

absl::Status PieceRunner::TakeCarry(BorrowedLane& lane) {
  PREFIXD_RETURN_IF_ERROR(Resume(lane));
  ScanCarry carry = {.num_items = first_item_ + done_.totals.num_items};
  absl::Status status;
  if (has_carry_) status = lane.lane->CopyToHost(lane.scalar.host.data(), carry_.data(), work_->shape().carry_bytes);
  if (status.ok() && open_.num_items() > 0) {
    status = lane.lane->CopyToHost(lane.mask.host.data(), open_.data(), open_.size_bytes());
  }
  if (status.ok() && open_coefficients_.num_items() > 0) {
    status =
        lane.lane->CopyToHost(lane.indices.host.data(), open_coefficients_.data(), open_coefficients_.size_bytes());
  }
  PREFIXD_RETURN_IF_ERROR(Settle(lane, std::move(status)));
  const auto text = [](const StagingBlock& block, uint64_t size_bytes) {
    return std::string(reinterpret_cast<const char*>(block.host.data()), size_bytes);
  };
  if (has_carry_) carry.value = text(lane.scalar, work_->shape().carry_bytes);
  carry.open_items = text(lane.mask, open_.size_bytes());
  carry.open_coefficients = text(lane.indices, open_coefficients_.size_bytes());
  carry_out_ = EncodeCarry(*work_, carry);
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
  if (places_.values() || work_->shape().has_input) {
    PREFIXD_ASSIGN_OR_RETURN(arrays->in,
                             BringInItems(lane, piece, direct, places_.values(), piece.chunk.values, open_, lane.in));
  }
  if (work_->shape().has_coefficients) {
    PREFIXD_ASSIGN_OR_RETURN(arrays->coefficients,
                             BringInItems(lane, piece, direct, places_.coefficients(),
                                          piece.chunk.coefficients.value_or(Payload()), open_coefficients_, lane.mask));
  }
  if (work_->shape().has_offsets) {
    const std::byte* data = nullptr;
    if (work_->shape().keys) {
      data = runs_.offsets.data();
    } else if (const auto& offsets = places_.offsets()) {
      data = offsets->data;
    } else {
      PREFIXD_ASSIGN_OR_RETURN(data, BringInOffsets(lane, *piece.chunk.offsets, direct));
    }
    offsets_ = arrays->offsets = reinterpret_cast<const uint64_t*>(data);
    arrays->num_offsets = num_offsets_;
  }
  const std::optional<MaskKind> mask = work_->shape().mask;
  if (!mask) return absl::OkStatus();
  if (places_.mask()) {
    arrays->mask = places_.mask()->data + MaskBytes(*mask, done_.totals.num_items);
    return absl::OkStatus();
  }
  PREFIXD_ASSIGN_OR_RETURN(arrays->mask, BringIn(lane, lane.mask, *piece.chunk.mask, MaskBytes(*mask, piece.first),
                                                 MaskBytes(*mask, piece.num_items), /*alignment=*/1,
                                                 /*offset_bytes=*/0, direct));
  return absl::OkStatus();
}

absl::StatusOr<const std::byte*> PieceRunner::BringInItems(BorrowedLane& lane, const Piece& piece, bool direct,
                                                           const std::optional<DeviceItems>& resident,
                                                           const Payload& payload, const OpenGroup& open,
                                                           const StagingBlock& block) {
  const uint64_t item_bytes = work_->item_bytes();
  if (!resident) {
    PREFIXD_RETURN_IF_ERROR(open.CopyTo(*lane.lane, block.device.data()));
    return BringIn(lane, block, payload, piece.first * item_bytes, piece.num_items * item_bytes, item_bytes,
                   open.size_bytes(), direct);
  }
  const std::byte* const items = resident->data + done_.totals.num_items * item_bytes;
  if (open.num_items() == 0) return items;
  PREFIXD_RETURN_IF_ERROR(open.CopyTo(*lane.lane, block.device.data()));
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyOnDevice(block.device.data() + open.size_bytes(), items,
                                                  piece.num_items * item_bytes, CopyTiming::kUntimed));
  return block.device.data();
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

bool PieceRunner::FitsDirect(const BorrowedLane& lane, uint64_t num_items) const {
  if (num_items > piece_items_ || !IsStaged()) return false;
  return num_items * work_->widest_bytes_per_item() <= lane.direct_bytes;
}

// Where the piece's output items go, those of the open group before it included.
absl::Status PieceRunner::PlaceOutputs(BorrowedLane& lane, const Piece& piece, bool direct, Outputs* outputs) {
  const WorkShape& shape = work_->shape();
  const auto place = [&](std::optional<Destination>& sink, const StagingBlock& block, uint64_t item_bytes,
                         std::string_view field, Outputs::Part* part) -> absl::Status {
    if (item_bytes == 0) return absl::OkStatus();
    part->data = block.data(direct);
    if (!sink) return absl::OkStatus();
    PREFIXD_RETURN_IF_ERROR(sink->Prepare(*lane.lane));
    const DeviceItems& room = sink->room();
    part->to = room.data + num_outputs_ * item_bytes;
    part->room = room.num_items - num_outputs_;
    if (shape.is_reduced && shape.keys && part->room < num_offsets_ - 1) {
      return Error(absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", field,
                   StrCat("there are ", num_offsets_ - 1, " runs of equal keys and the slice has room for ", part->room,
                          ": name one that is long enough, or ask for a new array"));
    }
    // Fewer may be kept than there is room for; how many, the kernel will say.
    if (shape.is_counted ? part->room >= piece.num_items : open_.num_items() == 0) {
      part->data = part->to;  // Those of an open group are there already, or another call's.
    } else if (shape.is_counted && !IsStaged()) {
      PREFIXD_ASSIGN_OR_RETURN(part->scratch, lane.lane->Allocate(piece.num_items * item_bytes));
      part->data = part->scratch.data();
    }
    return absl::OkStatus();
  };
  PREFIXD_RETURN_IF_ERROR(place(places_.values_sink(), lane.values, shape.value_bytes, "sink.array", &outputs->values));
  PREFIXD_RETURN_IF_ERROR(
      place(places_.indices_sink(), lane.indices, shape.index_bytes, "keys_sink.array", &outputs->indices));
  if (!shape.counts_segments || shape.index_bytes > 0) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(outputs->indices.scratch, lane.lane->Allocate(piece.num_items * sizeof(uint64_t)));
  outputs->indices.data = outputs->indices.scratch.data();
  return absl::OkStatus();
}

// The closed items run behind the carry of those before, and leave a carry. The open ones run behind that, for their
// output items alone: they will run again.
absl::Status PieceRunner::Enqueue(BorrowedLane& lane, const Piece& piece, bool direct, Outputs* outputs) {
  const WorkShape& shape = work_->shape();
  const uint64_t num_items = open_.num_items() + piece.num_items;
  const uint64_t closed = ClosedItems(piece);
  const bool carries = shape.carry_bytes > 0 && !piece.is_last;
  if (carries && carry_.data() == nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(carry_, lane.lane->Allocate(shape.carry_bytes));
  }
  PREFIXD_RETURN_IF_ERROR(PlaceOutputs(lane, piece, direct, outputs));
  WorkArrays arrays = {.values = outputs->values.data,
                       .indices = outputs->indices.data,
                       .scalar = lane.scalar.data(direct || work_->WritesScalarOnce()),
                       .num_items = closed,
                       .is_part = piece.is_part,
                       .first_item = first_item_ + Position() - open_.num_items()};
  PREFIXD_RETURN_IF_ERROR(BringIn(lane, piece, direct, &arrays));
  if (closed > 0 || (shape.is_reduced && num_offsets_ > 1) || shape.counts_segments ||
      (shape.has_initial && !piece.is_part)) {
    arrays.carry_in = has_carry_ ? carry_.data() : nullptr;
    arrays.carry_out = carries ? carry_.data() : nullptr;
    PREFIXD_RETURN_IF_ERROR(work_->Enqueue(*lane.lane, arrays));
    has_carry_ = carries;
  }
  if (shape.is_reduced && shape.index_bytes > 0) {
    PREFIXD_RETURN_IF_ERROR(TakeKeys(lane, *shape.keys, runs_, keys_, piece.num_items, arrays.indices));
  }
  // Before they run: in place, their output items take their place.
  if (keeps_open_group_) PREFIXD_RETURN_IF_ERROR(open_.Keep(*lane.lane, arrays.in, closed, num_items));
  if (keeps_open_group_ && shape.has_coefficients) {
    PREFIXD_RETURN_IF_ERROR(open_coefficients_.Keep(*lane.lane, arrays.coefficients, closed, num_items));
  }
  if (closed < num_items && shape.HasItems() && !shape.is_reduced) {
    arrays.in += closed * work_->item_bytes();
    if (shape.has_coefficients) arrays.coefficients += closed * work_->item_bytes();
    arrays.values += closed * shape.value_bytes;
    arrays.num_items = num_items - closed;
    arrays.first_item += closed;
    arrays.carry_in = has_carry_ ? carry_.data() : nullptr;
    arrays.carry_out = nullptr;
    return work_->Enqueue(*lane.lane, arrays);
  }
  return absl::OkStatus();
}

absl::Status PieceRunner::EnqueueCopiesOut(BorrowedLane& lane, const Piece& piece, uint64_t open_before, bool direct,
                                           const Outputs& outputs) {
  const WorkShape& shape = work_->shape();
  const auto copy_out = [&](const StagingBlock& block, uint64_t first_byte, uint64_t size_bytes) {
    if (direct || size_bytes == 0) return absl::OkStatus();
    return lane.lane->CopyToHost(block.host.data(), block.device.data() + first_byte, size_bytes);
  };
  if (IsReducedPart(piece)) return piece.is_last ? copy_out(lane.scalar, 0, sizeof(ReduceState)) : absl::OkStatus();
  if ((shape.is_counted || piece.is_last) && !work_->WritesScalarOnce()) {
    PREFIXD_RETURN_IF_ERROR(copy_out(lane.scalar, 0, shape.scalar_bytes));
  }
  uint64_t num_outputs = NumOutputs(piece);
  const bool needs_count =
      !direct || outputs.values.IsElsewhere() || outputs.indices.IsElsewhere() || shape.counts_segments;
  if (shape.is_counted && needs_count) {  // Only what was kept moves on.
    PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
    num_outputs = CountAt(lane.scalar.host.data());
    PREFIXD_RETURN_IF_ERROR(MoveKept(lane, outputs.values, num_outputs, shape.value_bytes, "values_sink.array"));
    PREFIXD_RETURN_IF_ERROR(MoveKept(lane, outputs.indices, num_outputs, shape.index_bytes, "indices_sink.array"));
    if (shape.counts_segments) PREFIXD_RETURN_IF_ERROR(CountSegments(lane, outputs, num_outputs));
  }
  if (!shape.is_counted && outputs.values.IsElsewhere()) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyOnDevice(outputs.values.to,
                                                    outputs.values.data + open_before * shape.value_bytes,
                                                    num_outputs * shape.value_bytes, CopyTiming::kUntimed));
  }
  PREFIXD_RETURN_IF_ERROR(copy_out(lane.values, open_before * inline_value_bytes_, num_outputs * inline_value_bytes_));
  return copy_out(lane.indices, 0, num_outputs * inline_index_bytes_);
}

absl::Status PieceRunner::MoveKept(BorrowedLane& lane, const Outputs::Part& part, uint64_t num_kept,
                                   uint64_t item_bytes, std::string_view field) {
  if (!part.IsElsewhere()) return absl::OkStatus();
  if (num_kept > part.room) {
    return Error(
        absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", field,
        StrCat("at least ", done_.totals.num_kept + num_kept, " elements were kept and the slice has room for ",
               done_.totals.num_kept + part.room, ": name one that is long enough, or ask for a new array"));
  }
  if (num_kept == 0) return absl::OkStatus();
  return lane.lane->CopyOnDevice(part.to, part.data, num_kept * item_bytes, CopyTiming::kUntimed);
}

absl::Status PieceRunner::ConcludeSinks(BorrowedLane& lane) {
  for (std::optional<Destination>* sink : {&places_.values_sink(), &places_.indices_sink()}) {
    if (!*sink) continue;
    PREFIXD_RETURN_IF_ERROR(Settle(lane, (*sink)->Conclude(*lane.lane, NumOutputs())));
  }
  std::optional<Destination>& counts = places_.counts_sink();
  if (counts) PREFIXD_RETURN_IF_ERROR(Settle(lane, counts->Conclude(*lane.lane, num_offsets_ - 1)));
  return absl::OkStatus();
}

absl::Status PieceRunner::Publish(Result* result) {
  result->row_values = Payload(std::exchange(row_values_, {}));
  if (auto& sink = places_.values_sink()) {
    PREFIXD_RETURN_IF_ERROR(sink->Publish(NumOutputs(), &result->new_values, &result->values));
  }
  if (auto& sink = places_.indices_sink()) {
    PREFIXD_RETURN_IF_ERROR(sink->Publish(NumOutputs(), &result->new_indices, &result->indices));
  }
  if (auto& sink = places_.counts_sink()) {
    PREFIXD_RETURN_IF_ERROR(sink->Publish(num_offsets_ - 1, &result->new_counts, &result->counts));
  }
  return absl::OkStatus();
}

TaskSize PieceRunner::SizeOfTask(uint64_t num_items) const {
  if (work_->is_yardstick()) return TaskSize::kYardstick;  // A few items may take it long.
  const uint64_t most = kMaxSmallBytes / work_->widest_bytes_per_item();
  return open_.num_items() + num_items <= most ? TaskSize::kSmall : TaskSize::kLarge;
}

bool PieceRunner::IsBatchable(const Piece& piece) const {
  return shape_ == CallShape::kUnary && piece.is_last && places_.AreInline() && !carry_in_ &&
         !work_->shape().IsAlone() && done_.totals.num_items == 0 && SizeOfTask(piece.num_items) == TaskSize::kSmall;
}

void PieceRunner::Describe(Result* result) const {
  Timing& timing = result->timing;
  timing.host_copy_ns = done_.host_copy_ns;
  timing.host_to_device_ns = done_.device.host_to_device_ns;
  timing.kernel_ns = done_.device.kernel_ns;
  timing.device_to_host_ns = done_.device.device_to_host_ns;
  timing.launches = done_.device.launches;
  timing.num_bytes = done_.device.num_bytes;
  timing.algorithm = AlgorithmOf(work_->operation());
  timing.num_items = done_.totals.num_items;
  timing.batch_size = done_.batch_size;
  result->dtype = OutputOf(work_->operation());
  if (carry_out_) result->carry_out = Payload(*carry_out_);
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
