#include "server/chunk_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/association.h"
#include "kernels/status.h"
#include "server/kernel_args.h"

namespace prefixd {
namespace {

absl::Status InvalidArgument(std::string_view reason, std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, reason, field, message);
}

uint64_t ReplyBytesPerItem(const Spec& spec) {
  if (spec.primitive() == Primitive::kScan) return SizeOf(spec.output());
  const auto* compact = std::get_if<CompactSpec>(&spec.detail);
  if (compact == nullptr) return 0;
  return (compact->return_values ? SizeOf(spec.dtype) : 0) +
         (compact->return_indices ? SizeOf(compact->index_dtype) : 0);
}

// Replies below this are copied: a block that is lent has to come back, which costs more.
constexpr uint64_t kMinLentBytes = uint64_t{16} << 10;

// Whether the bits depend on where the array is cut. Integers, and extrema, combine to the same bits in any order.
bool HasOpenGroup(const Spec& spec, CallShape shape) {
  if (shape == CallShape::kUnary || !FollowsNumerics(spec.algorithm)) return false;
  return IsFloating(spec.output()) && (spec.op() == Op::kSum || spec.op() == Op::kProd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChunkPipeline>> ChunkPipeline::Create(const Device& device, const Spec& spec,
                                                                     CallShape shape) {
  Spec resolved = spec;
  const auto* scan = std::get_if<ScanSpec>(&spec.detail);
  const auto* reduce = std::get_if<ReduceSpec>(&spec.detail);
  const Op op = scan != nullptr ? scan->op : reduce != nullptr ? reduce->op : Op::kSum;
  PREFIXD_ASSIGN_OR_RETURN(resolved.algorithm,
                           device.Resolve(spec.primitive(), spec.dtype, spec.output(), op, spec.algorithm));
  if (spec.num_items) {
    PREFIXD_RETURN_IF_ERROR(device.CheckLength(spec.primitive(), resolved.algorithm, *spec.num_items));
  }
  if (scan != nullptr && scan->reverse && shape == CallShape::kStream) {
    return Error(absl::StatusCode::kFailedPrecondition, "REVERSE_ON_STREAM", "spec.reverse",
                 StrCat("a reverse scan begins with the last element, and a stream's end is not known: use the "
                        "unary call, for at most ",
                        kMaxReplyPayloadBytes / SizeOf(spec.output()), " elements of ", Name(spec.output())));
  }
  return std::unique_ptr<ChunkPipeline>(new ChunkPipeline(device, resolved, shape));
}

ChunkPipeline::ChunkPipeline(const Device& device, const Spec& spec, CallShape shape)
    : device_(device),
      spec_(spec),
      shape_(shape),
      has_open_group_(HasOpenGroup(spec, shape)),
      reply_bytes_per_item_(ReplyBytesPerItem(spec)) {
  const uint64_t widest = std::max<uint64_t>(SizeOf(spec.dtype), reply_bytes_per_item_);
  // Whole bytes of a bit mask, so that every piece but the last starts on a byte of it.
  piece_items_ = kMaxReplyPayloadBytes / widest / kItemsPerMaskByte * kItemsPerMaskByte;
}

absl::Status ChunkPipeline::Check(const Chunk& chunk) {
  const size_t item_bytes = SizeOf(spec_.dtype);
  if (chunk.values.size() % item_bytes != 0) {
    return InvalidArgument("LENGTH_NOT_MULTIPLE", "values.inline.data",
                           StrCat(chunk.values.size(), " bytes are no whole number of ", Name(spec_.dtype),
                                  " elements: expected a multiple of ", item_bytes));
  }
  const uint64_t num_items = chunk.values.size() / item_bytes;
  if (chunk.first_item && *chunk.first_item != items_checked_) {
    return InvalidArgument("CHUNK_OUT_OF_ORDER", "values.inline.first_item",
                           StrCat("the chunk says it starts at element ", *chunk.first_item, ", but ", items_checked_,
                                  " came before it: send every chunk once, in order"));
  }
  if (spec_.num_items && num_items > *spec_.num_items - items_checked_) {
    return InvalidArgument(
        "COUNT_MISMATCH", "spec.num_items",
        StrCat("declared ", *spec_.num_items, " elements, but at least ", items_checked_ + num_items, " came"));
  }
  const auto* compact = std::get_if<CompactSpec>(&spec_.detail);
  const bool wants_mask = compact != nullptr && compact->selector != Selector::kPredicate;
  if (!wants_mask && chunk.mask) {
    return InvalidArgument("FIELD_CONFLICT", "mask",
                           "a predicate selects, so no mask is expected: send one or the other");
  }
  if (wants_mask) {
    const uint64_t expected = MaskBytesOf(compact->selector, num_items);
    const uint64_t came = chunk.mask ? chunk.mask->size() : 0;
    if (came != expected) {
      return InvalidArgument(
          "MASK_LENGTH", "mask.inline.data",
          StrCat("the mask has ", came, " bytes for a chunk of ", num_items, " elements: expected ", expected, ", one ",
                 compact->selector == Selector::kBitMask ? "bit" : "byte", " an element"));
    }
  }
  if (shape_ == CallShape::kUnary && num_items * reply_bytes_per_item_ > kMaxReplyPayloadBytes) {
    return Error(absl::StatusCode::kOutOfRange, "REPLY_TOO_LARGE", "values.inline.data",
                 StrCat("the reply could have ", num_items * reply_bytes_per_item_,
                        " bytes of payload and a message holds ", kMaxReplyPayloadBytes, ": use the streaming call"));
  }
  PREFIXD_RETURN_IF_ERROR(device_.CheckLength(spec_.primitive(), spec_.algorithm, items_checked_ + num_items));
  items_checked_ += num_items;
  return absl::OkStatus();
}

Piece ChunkPipeline::Cut(const Chunk& chunk, uint64_t first, bool ends) const {
  const uint64_t rest = chunk.values.size() / SizeOf(spec_.dtype) - first;
  const uint64_t num_items = std::min(piece_items_, rest);
  // A declared length tells the end too. Check has seen to it that no more comes.
  const bool is_last = num_items == rest && (ends || (spec_.num_items && items_done_ + num_items == *spec_.num_items));
  return {.chunk = chunk, .first = first, .num_items = num_items, .is_last = is_last};
}

absl::Status ChunkPipeline::RunPiece(BorrowedLane& lane, const Piece& piece, const StopSignal& stop,
                                     std::optional<Reply>* reply) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  const uint64_t widest = std::max<uint64_t>(SizeOf(spec_.dtype), reply_bytes_per_item_);
  const bool touches_open_group = open_items_ > 0 || ClosedItems(piece) != piece.num_items;
  place_ = {.direct = !touches_open_group && piece.num_items * widest <= lane.direct_bytes};
  absl::Status status = CopyIn(lane, piece);
  if (status.ok()) {
    status = std::visit([&](const auto& detail) { return RunAs(detail, lane, piece, reply); }, spec_.detail);
  }
  PREFIXD_RETURN_IF_ERROR(Settle(lane, std::move(status)));
  items_done_ += piece.num_items;
  return absl::OkStatus();
}

absl::Status ChunkPipeline::RunEnd(BorrowedLane& lane, const StopSignal& stop) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  const void* d_state = state_.data();
  absl::Status status;
  if (open_items_ > 0) {
    d_state = lane.scalar.device.data();
    status = ReduceInto(lane.scalar.device.data(), std::get<ReduceSpec>(spec_.detail), lane, open_.data(), open_items_,
                        items_done_ - open_items_);
  }
  if (status.ok()) status = lane.lane->CopyToHost(lane.scalar.host.data(), d_state, sizeof(ReduceState));
  if (status.ok()) status = ReadState(lane);
  return Settle(lane, std::move(status));
}

absl::Status ChunkPipeline::Settle(BorrowedLane& lane, absl::Status status) {
  // Staging belongs to the next task from here on, so nothing may still be reading it.
  if (const absl::Status idle = lane.lane->Synchronize(); status.ok()) status = idle;
  device_times_ += lane.lane->TakeStageTimes();
  return status;
}

uint64_t ChunkPipeline::ClosedItems(const Piece& piece) const {
  const uint64_t num_items = open_items_ + piece.num_items;
  return has_open_group_ && !piece.is_last ? num_items - num_items % kGroupItems : num_items;
}

absl::Status ChunkPipeline::CopyIn(BorrowedLane& lane, const Piece& piece) {
  const size_t item_bytes = SizeOf(spec_.dtype);
  const uint64_t open_bytes = open_items_ * item_bytes;
  if (open_bytes > 0) {
    PREFIXD_RETURN_IF_ERROR(
        lane.lane->CopyOnDevice(lane.in.device.data(), open_.data(), open_bytes, CopyTiming::kUntimed));
  }
  PREFIXD_RETURN_IF_ERROR(
      CopyIn(lane, lane.in, piece.chunk.values, piece.first * item_bytes, piece.num_items * item_bytes, open_bytes));
  if (!piece.chunk.mask) return absl::OkStatus();
  const Selector selector = std::get<CompactSpec>(spec_.detail).selector;
  return CopyIn(lane, lane.mask, *piece.chunk.mask, MaskBytesOf(selector, piece.first),
                MaskBytesOf(selector, piece.num_items), 0);
}

absl::Status ChunkPipeline::CopyIn(BorrowedLane& lane, const StagingBlock& block, const Payload& payload,
                                   uint64_t first_byte, uint64_t size_bytes, uint64_t device_offset_bytes) {
  const auto start = std::chrono::steady_clock::now();
  payload.CopyTo(block.host.data(), first_byte, size_bytes);
  AddHostCopy(start);
  if (place_.direct) return absl::OkStatus();
  return lane.lane->CopyToDevice(block.device.data() + device_offset_bytes, block.host.data(), size_bytes);
}

absl::Status ChunkPipeline::MakeState(BorrowedLane& lane) {
  if (state_.data() != nullptr) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(state_, lane.lane->Allocate(sizeof(ReduceState)));
  return absl::OkStatus();
}

absl::Status ChunkPipeline::KeepOpen(BorrowedLane& lane, const std::byte* in, uint64_t closed, uint64_t num_items) {
  const size_t item_bytes = SizeOf(spec_.dtype);
  if (closed > 0) open_items_ = 0;
  const uint64_t first = closed + open_items_;  // Those before it are kept already.
  if (first == num_items) return absl::OkStatus();
  if (open_.data() == nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(open_, lane.lane->Allocate(kGroupItems * item_bytes));
  }
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyOnDevice(open_.data() + open_items_ * item_bytes, in + first * item_bytes,
                                                  (num_items - first) * item_bytes, CopyTiming::kUntimed));
  open_items_ = num_items - closed;
  return absl::OkStatus();
}

absl::Status ChunkPipeline::RunAs(const ScanSpec& scan, BorrowedLane& lane, const Piece& piece,
                                  std::optional<Reply>* reply) {
  if (!piece.is_last) PREFIXD_RETURN_IF_ERROR(MakeState(lane));
  const size_t item_bytes = SizeOf(spec_.dtype);
  const size_t out_bytes = SizeOf(spec_.output());
  const uint64_t open_before = open_items_;
  const uint64_t num_items = open_before + piece.num_items;
  const uint64_t closed = ClosedItems(piece);
  std::byte* const in = place_.Of(lane.in);
  std::byte* const out = place_.Of(lane.values);
  ScanArgs args = ArgsOf(spec_, scan);
  if (closed > 0) {
    args.in = in;
    args.out = out;
    args.num_items = closed;
    args.carry_in = has_carry_ ? state_.data() : nullptr;
    args.carry_out = piece.is_last ? nullptr : state_.data();
    PREFIXD_RETURN_IF_ERROR(lane.lane->Scan(args));
    has_carry_ = !piece.is_last;
  }
  if (closed < num_items) {
    args.in = in + closed * item_bytes;
    args.out = out + closed * out_bytes;
    args.num_items = num_items - closed;
    args.carry_in = has_carry_ ? state_.data() : nullptr;
    args.carry_out = nullptr;
    PREFIXD_RETURN_IF_ERROR(lane.lane->Scan(args));
  }
  PREFIXD_RETURN_IF_ERROR(KeepOpen(lane, in, closed, num_items));
  if (!place_.direct) {
    PREFIXD_RETURN_IF_ERROR(
        lane.lane->CopyToHost(lane.values.host.data(), out + open_before * out_bytes, piece.num_items * out_bytes));
  }
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  *reply = {.values = Take(lane, lane.values, piece.num_items * SizeOf(spec_.output())), .indices = {}};
  return absl::OkStatus();
}

absl::Status ChunkPipeline::ReduceInto(void* state, const ReduceSpec& reduce, BorrowedLane& lane, const void* in,
                                       uint64_t num_items, uint64_t first_item) {
  ReduceArgs args = ArgsOf(spec_, reduce);
  args.in = in;
  args.num_items = num_items;
  args.first_item = first_item;
  args.state_in = has_carry_ ? reinterpret_cast<ReduceState*>(state_.data()) : nullptr;
  args.state_out = static_cast<ReduceState*>(state);
  return lane.lane->Reduce(args);
}

absl::Status ChunkPipeline::ReadState(BorrowedLane& lane) {
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  std::memcpy(&reduced_.emplace(), lane.scalar.host.data(), sizeof(ReduceState));
  return absl::OkStatus();
}

absl::Status ChunkPipeline::RunAs(const ReduceSpec& reduce, BorrowedLane& lane, const Piece& piece,
                                  std::optional<Reply>* /*reply*/) {
  const uint64_t first_item = items_done_ - open_items_;
  const uint64_t num_items = open_items_ + piece.num_items;
  const uint64_t closed = ClosedItems(piece);
  const std::byte* const in = place_.Of(lane.in);
  if (piece.is_last) {
    PREFIXD_RETURN_IF_ERROR(ReduceInto(place_.Of(lane.scalar), reduce, lane, in, num_items, first_item));
    if (!place_.direct) {
      PREFIXD_RETURN_IF_ERROR(
          lane.lane->CopyToHost(lane.scalar.host.data(), lane.scalar.device.data(), sizeof(ReduceState)));
    }
    return ReadState(lane);
  }
  PREFIXD_RETURN_IF_ERROR(MakeState(lane));
  if (closed > 0) {
    PREFIXD_RETURN_IF_ERROR(ReduceInto(state_.data(), reduce, lane, in, closed, first_item));
    has_carry_ = true;
  }
  return KeepOpen(lane, in, closed, num_items);
}

absl::Status ChunkPipeline::RunAs(const CompactSpec& compact, BorrowedLane& lane, const Piece& piece,
                                  std::optional<Reply>* reply) {
  CompactArgs args = ArgsOf(spec_, compact);
  args.mask = place_.Of(lane.mask);
  args.in = place_.Of(lane.in);
  args.num_items = piece.num_items;
  args.first_item = items_done_;
  args.values = compact.return_values ? place_.Of(lane.values) : nullptr;
  args.indices = compact.return_indices ? place_.Of(lane.indices) : nullptr;
  args.count = reinterpret_cast<uint64_t*>(place_.Of(lane.scalar));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Compact(args));
  if (!place_.direct) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.scalar.host.data(), args.count, sizeof(uint64_t)));
  }
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  uint64_t kept = 0;
  std::memcpy(&kept, lane.scalar.host.data(), sizeof(kept));

  const uint64_t values_bytes = compact.return_values ? kept * SizeOf(spec_.dtype) : 0;
  const uint64_t indices_bytes = compact.return_indices ? kept * SizeOf(compact.index_dtype) : 0;
  if (!place_.direct && values_bytes > 0) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.values.host.data(), lane.values.device.data(), values_bytes));
  }
  if (!place_.direct && indices_bytes > 0) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.indices.host.data(), lane.indices.device.data(), indices_bytes));
  }
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  items_kept_ += kept;
  *reply = {.values = Take(lane, lane.values, values_bytes),
            .indices = Take(lane, lane.indices, indices_bytes),
            .num_kept = items_kept_};
  return absl::OkStatus();
}

TaskSize ChunkPipeline::SizeOfTask(uint64_t num_items) const {
  const uint64_t widest = std::max<uint64_t>(SizeOf(spec_.dtype), reply_bytes_per_item_);
  // Of an algorithm that is there to be compared with, a few items may take long.
  const bool is_small = FollowsNumerics(spec_.algorithm) && (open_items_ + num_items) * widest <= kMaxSmallBytes;
  return is_small ? TaskSize::kSmall : TaskSize::kLarge;
}

bool ChunkPipeline::IsBatchable(const Piece& piece) const {
  return shape_ == CallShape::kUnary && piece.is_last && items_done_ == 0 &&
         SizeOfTask(piece.num_items) == TaskSize::kSmall;
}

void ChunkPipeline::AcceptShare(const BatchShare& share) {
  items_done_ = share.num_items;
  items_kept_ = share.num_kept;
  reduced_ = share.reduced;
  device_times_ = share.device;
  host_copy_ns_ = share.host_copy_ns;
  batch_size_ = share.size;
}

absl::Status ChunkPipeline::Finish() const {
  if (spec_.num_items && *spec_.num_items != items_checked_) {
    return InvalidArgument("COUNT_MISMATCH", "spec.num_items",
                           StrCat("declared ", *spec_.num_items, " elements, but ", items_checked_, " came"));
  }
  return absl::OkStatus();
}

void ChunkPipeline::Describe(Result* result) const {
  result->timing.host_copy_ns = host_copy_ns_;
  result->timing.device = device_times_;
  result->timing.algorithm = spec_.algorithm;
  result->timing.num_items = items_done_;
  result->timing.batch_size = batch_size_;
  result->num_kept = items_kept_;
  result->dtype = spec_.output();
  if (const auto* reduce = std::get_if<ReduceSpec>(&spec_.detail)) {
    if (items_done_ == 0) {
      result->value = reduce->init.value_or(Identity(reduce->op, spec_.output()));
      return;
    }
    if (!reduced_) return;  // It failed.
    result->value = reduced_->value;
    const bool extremum = reduce->op == Op::kMin || reduce->op == Op::kMax;
    if (extremum && reduced_->position != 0 && reduced_->position != ReduceState::kNothing) {
      result->index = reduced_->position - 1;
    }
  }
}

Payload ChunkPipeline::Take(BorrowedLane& lane, StagingBlock& block, uint64_t size_bytes) {
  const std::string_view bytes(reinterpret_cast<const char*>(block.host.data()), size_bytes);
  if (size_bytes >= kMinLentBytes) {
    if (Payload::Owner lent = lane.replies->Exchange(&block.host)) return Payload(bytes, std::move(lent));
  }
  const auto start = std::chrono::steady_clock::now();
  Payload copy{std::string(bytes)};
  AddHostCopy(start);
  return copy;
}

void ChunkPipeline::AddHostCopy(std::chrono::steady_clock::time_point start) {
  host_copy_ns_ =
      host_copy_ns_.value_or(0) + std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

}  // namespace prefixd
