#include "server/chunk_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "kernels/status.h"

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

// Whole bytes of a bit mask, so that every piece but the last starts on a byte of it.
constexpr uint64_t kItemsPerMaskByte = 8;

uint64_t MaskBytes(Selector selector, uint64_t num_items) {
  return selector == Selector::kBitMask ? (num_items + kItemsPerMaskByte - 1) / kItemsPerMaskByte : num_items;
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
    : device_(device), spec_(spec), shape_(shape), reply_bytes_per_item_(ReplyBytesPerItem(spec)) {
  const uint64_t widest = std::max<uint64_t>(SizeOf(spec.dtype), reply_bytes_per_item_);
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
    const uint64_t expected = MaskBytes(compact->selector, num_items);
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

absl::StatusOr<uint64_t> ChunkPipeline::RunPiece(BorrowedLane& lane, const Chunk& chunk, uint64_t first,
                                                 const StopSignal& stop, std::optional<Reply>* reply) {
  PREFIXD_RETURN_IF_ERROR(stop.Check());
  const uint64_t num_items = std::min(piece_items_, chunk.values.size() / SizeOf(spec_.dtype) - first);
  absl::Status status = Pass(lane, chunk, first, num_items, reply);
  // Staging belongs to the next task from here on, so nothing may still be reading it.
  if (const absl::Status idle = lane.lane->Synchronize(); status.ok()) status = idle;
  device_times_ += lane.lane->TakeStageTimes();
  PREFIXD_RETURN_IF_ERROR(status);
  items_done_ += num_items;
  return num_items;
}

absl::Status ChunkPipeline::Pass(BorrowedLane& lane, const Chunk& chunk, uint64_t first, uint64_t num_items,
                                 std::optional<Reply>* reply) {
  const size_t item_bytes = SizeOf(spec_.dtype);
  CopyIn(lane.in, chunk.values.substr(first * item_bytes, num_items * item_bytes));
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToDevice(lane.in.device.data(), lane.in.host.data(), num_items * item_bytes));
  if (chunk.mask) {
    const Selector selector = std::get<CompactSpec>(spec_.detail).selector;
    const uint64_t mask_bytes = MaskBytes(selector, num_items);
    CopyIn(lane.mask, chunk.mask->substr(MaskBytes(selector, first), mask_bytes));
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToDevice(lane.mask.device.data(), lane.mask.host.data(), mask_bytes));
  }
  return std::visit([&](const auto& detail) { return Run(detail, lane, num_items, reply); }, spec_.detail);
}

absl::Status ChunkPipeline::MakeState(BorrowedLane& lane) {
  if (state_.data() != nullptr) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(state_, lane.lane->Allocate(sizeof(ReduceState)));
  return absl::OkStatus();
}

absl::Status ChunkPipeline::Run(const ScanSpec& scan, BorrowedLane& lane, uint64_t num_items,
                                std::optional<Reply>* reply) {
  PREFIXD_RETURN_IF_ERROR(MakeState(lane));
  ScanArgs args;
  args.dtype = spec_.dtype;
  args.out_dtype = spec_.out_dtype;
  args.op = scan.op;
  args.kind = scan.kind;
  args.reverse = scan.reverse;
  args.algorithm = spec_.algorithm;
  args.in = lane.in.device.data();
  args.out = lane.values.device.data();
  args.num_items = num_items;
  args.init = scan.init.value_or(ScanStart(scan.op, spec_.output(), scan.kind));
  args.carry_in = items_done_ == 0 ? nullptr : state_.data();
  args.carry_out = state_.data();
  PREFIXD_RETURN_IF_ERROR(lane.lane->Scan(args));
  const uint64_t size_bytes = num_items * SizeOf(spec_.output());
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.values.host.data(), args.out, size_bytes));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  *reply = {.values = CopyOut(lane.values, size_bytes), .indices = {}};
  return absl::OkStatus();
}

absl::Status ChunkPipeline::Run(const ReduceSpec& reduce, BorrowedLane& lane, uint64_t num_items,
                                std::optional<Reply>* /*reply*/) {
  PREFIXD_RETURN_IF_ERROR(MakeState(lane));
  auto* d_state = reinterpret_cast<ReduceState*>(state_.data());
  ReduceArgs args;
  args.dtype = spec_.dtype;
  args.out_dtype = spec_.out_dtype;
  args.op = reduce.op;
  args.algorithm = spec_.algorithm;
  args.in = lane.in.device.data();
  args.num_items = num_items;
  args.first_item = items_done_;
  args.init = reduce.init ? ReduceState{*reduce.init, 0} : ReduceState{Neutral(reduce.op, spec_.output())};
  args.state_in = items_done_ == 0 ? nullptr : d_state;
  args.state_out = d_state;
  PREFIXD_RETURN_IF_ERROR(lane.lane->Reduce(args));
  // Read back with every piece: the lane has to be waited for anyway, and the end of the array is not known.
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.scalar.host.data(), d_state, sizeof(ReduceState)));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  std::memcpy(&reduced_, lane.scalar.host.data(), sizeof(ReduceState));
  return absl::OkStatus();
}

absl::Status ChunkPipeline::Run(const CompactSpec& compact, BorrowedLane& lane, uint64_t num_items,
                                std::optional<Reply>* reply) {
  auto* d_count = reinterpret_cast<uint64_t*>(lane.scalar.device.data());
  CompactArgs args;
  args.dtype = spec_.dtype;
  args.selector = compact.selector;
  args.comparison = compact.comparison;
  args.value = compact.value;
  args.mask = lane.mask.device.data();
  args.invert = compact.invert;
  args.algorithm = spec_.algorithm;
  args.in = lane.in.device.data();
  args.num_items = num_items;
  args.first_item = items_done_;
  args.values = compact.return_values ? lane.values.device.data() : nullptr;
  args.indices = compact.return_indices ? lane.indices.device.data() : nullptr;
  args.index_dtype = compact.index_dtype;
  args.count = d_count;
  PREFIXD_RETURN_IF_ERROR(lane.lane->Compact(args));
  PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.scalar.host.data(), d_count, sizeof(uint64_t)));
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  uint64_t kept = 0;
  std::memcpy(&kept, lane.scalar.host.data(), sizeof(kept));

  const uint64_t values_bytes = compact.return_values ? kept * SizeOf(spec_.dtype) : 0;
  const uint64_t indices_bytes = compact.return_indices ? kept * SizeOf(compact.index_dtype) : 0;
  if (values_bytes > 0) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.values.host.data(), args.values, values_bytes));
  }
  if (indices_bytes > 0) {
    PREFIXD_RETURN_IF_ERROR(lane.lane->CopyToHost(lane.indices.host.data(), args.indices, indices_bytes));
  }
  PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  items_kept_ += kept;
  *reply = {.values = CopyOut(lane.values, values_bytes),
            .indices = CopyOut(lane.indices, indices_bytes),
            .num_kept = items_kept_};
  return absl::OkStatus();
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
  result->num_kept = items_kept_;
  result->dtype = spec_.output();
  if (const auto* reduce = std::get_if<ReduceSpec>(&spec_.detail)) {
    if (items_done_ == 0) {
      result->value = reduce->init.value_or(Identity(reduce->op, spec_.output()));
      return;
    }
    result->value = reduced_.value;
    const bool extremum = reduce->op == Op::kMin || reduce->op == Op::kMax;
    if (extremum && reduced_.position != 0 && reduced_.position != ReduceState::kNothing) {
      result->index = reduced_.position - 1;
    }
  }
}

void ChunkPipeline::CopyIn(const StagingBlock& block, std::string_view bytes) {
  const auto start = std::chrono::steady_clock::now();
  std::memcpy(block.host.data(), bytes.data(), bytes.size());
  AddHostCopy(start);
}

std::string ChunkPipeline::CopyOut(const StagingBlock& block, uint64_t size_bytes) {
  const auto start = std::chrono::steady_clock::now();
  std::string bytes(reinterpret_cast<const char*>(block.host.data()), size_bytes);
  AddHostCopy(start);
  return bytes;
}

void ChunkPipeline::AddHostCopy(std::chrono::steady_clock::time_point start) {
  host_copy_ns_ =
      host_copy_ns_.value_or(0) + std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

}  // namespace prefixd
