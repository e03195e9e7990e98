#include "server/work/chunk_checker.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "server/work/segment_offsets.h"

namespace prefixd {
namespace {

absl::Status InvalidArgument(std::string_view reason, std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, reason, field, message);
}

// How many items a mask of so many bytes is for, at most.
uint64_t MaskItems(MaskKind kind, uint64_t num_bytes) { return kind == MaskKind::kBits ? num_bytes * 8 : num_bytes; }

std::optional<uint64_t> NumItems(const std::optional<DeviceItems>& items) {
  return items ? std::optional(items->num_items) : std::nullopt;
}

std::optional<uint64_t> CapacityOf(const Work& work, const Places& places) {
  // What is kept, and runs of keys, are counted by the runner, and a reduce has one value.
  if (work.shape().HasUnknownLength() || !work.shape().HasItems() || !places.values_sink()) return std::nullopt;
  return places.values_sink()->capacity();
}

// What an item takes in the replies at most.
uint64_t InlineBytesPerItem(const WorkShape& shape, const Places& places) {
  return (places.values_sink() ? 0 : shape.value_bytes) + (places.indices_sink() ? 0 : shape.index_bytes);
}

// What a caller can do whose reply would be too large.
std::string_view OtherWay(const Work& work, bool has_counts) {
  if (work.shape().is_reduced) {
    return work.shape().row_items ? "let the result go into an array, or send the rows in several calls"
                                  : "let the result go into an array";
  }
  if (work.CheckStream().ok()) return "use the streaming call";
  return has_counts ? "let the result, or its counts, go into an array" : "let the result go into an array";
}

}  // namespace

ChunkChecker::ChunkChecker(std::shared_ptr<const Work> work, CallShape shape, const Places& places)
    : work_(std::move(work)),
      shape_(shape),
      has_inline_values_(!places.values() && work_->shape().has_input),
      resident_items_(places.num_items()),
      resident_mask_bytes_(NumItems(places.mask())),
      resident_coefficients_(NumItems(places.coefficients())),
      resident_offsets_(NumItems(places.offsets())),
      resident_keys_(NumItems(places.keys())),
      capacity_(CapacityOf(*work_, places)),
      reply_bytes_per_item_(InlineBytesPerItem(work_->shape(), places)),
      reply_bytes_per_segment_(work_->shape().counts_segments && !places.counts_sink() ? sizeof(uint64_t) : 0) {}

absl::Status ChunkChecker::Check(Chunk* chunk) {
  PREFIXD_RETURN_IF_ERROR(has_inline_values_ ? CheckInlineValues(chunk) : CheckResidentValues(chunk));
  const uint64_t num_items = chunk->num_items;
  if (chunk->first_item && *chunk->first_item != num_items_) {
    return InvalidArgument("CHUNK_OUT_OF_ORDER", "values.inline.first_item",
                           StrCat("the chunk says it starts at element ", *chunk->first_item, ", but ", num_items_,
                                  " came before it: send every chunk once, in order"));
  }
  const std::optional<uint64_t> declared = NumItemsOf(work_->operation());
  if (declared && num_items > *declared - num_items_) {
    return InvalidArgument("COUNT_MISMATCH", "spec.num_items",
                           StrCat("declared ", *declared, " elements, but at least ", num_items_ + num_items, " came"));
  }
  PREFIXD_RETURN_IF_ERROR(resident_mask_bytes_ ? CheckResidentMask(*chunk) : CheckInlineMask(*chunk));
  PREFIXD_RETURN_IF_ERROR(CheckChunkCoefficients(*chunk));
  const bool comes_in_pieces = shape_ == CallShape::kStream && has_inline_values_;
  PREFIXD_RETURN_IF_ERROR(comes_in_pieces ? work_->CheckBeginning(num_items_ + num_items)
                                          : work_->CheckLength(num_items_ + num_items));
  PREFIXD_RETURN_IF_ERROR(CheckOffsets(chunk));
  const uint64_t num_outputs = work_->NumOutputs(num_items_ + num_items, chunk->num_offsets);
  const uint64_t num_segments = work_->shape().counts_segments ? chunk->num_offsets - 1 : 0;
  if (num_segments > kMaxReplyPayloadBytes / sizeof(uint64_t) && reply_bytes_per_segment_ > 0) {
    return Error(absl::StatusCode::kOutOfRange, "REPLY_TOO_LARGE", "counts_sink",
                 StrCat("the reply could have counts of ", num_segments, " segments and a message holds ",
                        kMaxReplyPayloadBytes, " bytes: let them go into an array"));
  }
  const uint64_t room = kMaxReplyPayloadBytes - num_segments * reply_bytes_per_segment_;
  const bool has_one_reply = shape_ == CallShape::kUnary || work_->shape().is_reduced;
  if (has_one_reply && reply_bytes_per_item_ > 0 && num_outputs > room / reply_bytes_per_item_) {
    return Error(absl::StatusCode::kOutOfRange, "REPLY_TOO_LARGE", "values.inline.data",
                 StrCat("the reply could have ", num_outputs, " elements of ", reply_bytes_per_item_,
                        " bytes and a message holds ", room,
                        " bytes of them: ", OtherWay(*work_, reply_bytes_per_segment_ > 0)));
  }
  if (capacity_ && num_outputs > *capacity_) {
    return Error(absl::StatusCode::kOutOfRange, "SINK_TOO_SMALL", "sink.array",
                 StrCat("the result has at least ", num_outputs, " elements and the slice has room for ", *capacity_,
                        ": name one that is long enough"));
  }
  num_items_ += num_items;
  // Empty segments have results, and an initial value is one.
  // What offsets are that are resident shows when it runs.
  const bool has_more = resident_offsets_ || work_->shape().has_initial;
  chunk->has_work = num_items > 0 || chunk->num_offsets > 1 || (has_more && !has_begun_);
  has_begun_ = true;
  return absl::OkStatus();
}

absl::Status ChunkChecker::CheckInlineValues(Chunk* chunk) const {
  const uint64_t item_bytes = work_->item_bytes();
  if (chunk->values.size() % item_bytes != 0) {
    return InvalidArgument("LENGTH_NOT_MULTIPLE", "values.inline.data",
                           StrCat(chunk->values.size(), " bytes are no whole number of ",
                                  Name(InputOf(work_->operation())), " elements: expected a multiple of ", item_bytes));
  }
  chunk->num_items = chunk->values.size() / item_bytes;
  return absl::OkStatus();
}

absl::Status ChunkChecker::CheckResidentValues(Chunk* chunk) const {
  if (!chunk->values.empty()) {
    return InvalidArgument("FIELD_CONFLICT", "values.inline",
                           "the first message says where the values are: send none with the later ones");
  }
  const uint64_t rest = *resident_items_ - num_items_;
  const std::optional<MaskKind> mask = work_->shape().mask;
  if (!mask || resident_mask_bytes_) {
    chunk->num_items = has_begun_ ? 0 : rest;
    return absl::OkStatus();
  }
  const uint64_t came = chunk->mask ? chunk->mask->size() : 0;
  chunk->num_items = std::min(rest, MaskItems(*mask, came));
  if (came == MaskBytes(*mask, chunk->num_items)) return absl::OkStatus();
  return InvalidArgument("MASK_LENGTH", "mask.inline.data",
                         StrCat("the mask has ", came, " bytes for the last ", rest, " elements: expected ",
                                MaskBytes(*mask, rest), " at most"));
}

absl::Status ChunkChecker::CheckInlineMask(const Chunk& chunk) const {
  const std::optional<MaskKind> kind = work_->shape().mask;
  if (!kind) {
    if (!chunk.mask) return absl::OkStatus();
    return InvalidArgument("FIELD_CONFLICT", "mask",
                           "a predicate selects, so no mask is expected: send one or the other");
  }
  const uint64_t expected = MaskBytes(*kind, chunk.num_items);
  const uint64_t came = chunk.mask ? chunk.mask->size() : 0;
  if (came == expected) return absl::OkStatus();
  return InvalidArgument(
      "MASK_LENGTH", "mask.inline.data",
      StrCat("the mask has ", came, " bytes for a chunk of ", chunk.num_items, " elements: expected ", expected,
             ", one ", *kind == MaskKind::kBits ? "bit" : "byte", " an element"));
}

absl::Status ChunkChecker::CheckResidentMask(const Chunk& chunk) const {
  const MaskKind kind = *work_->shape().mask;
  if (chunk.mask) {
    return InvalidArgument("FIELD_CONFLICT", "mask.inline", "the first message says where the mask is: send none");
  }
  if (kind == MaskKind::kBits && chunk.num_items > 0 && num_items_ % 8 != 0) {
    return InvalidArgument("MASK_LENGTH", "values.inline.data",
                           StrCat("a chunk begins at element ", num_items_,
                                  ", inside a byte of the resident mask: "
                                  "end every chunk but the last at a multiple of 8 elements"));
  }
  if (chunk.num_items <= MaskItems(kind, *resident_mask_bytes_) - num_items_) return absl::OkStatus();
  return InvalidArgument("MASK_LENGTH", "mask.array",
                         StrCat("the mask has ", *resident_mask_bytes_, " bytes for at least ",
                                num_items_ + chunk.num_items, " elements: name as many as there are elements"));
}

absl::Status ChunkChecker::CheckChunkCoefficients(const Chunk& chunk) const {
  const auto conflict = [](std::string_view why) {
    return InvalidArgument("FIELD_CONFLICT", "coefficients.inline", why);
  };
  if (resident_coefficients_ || !work_->shape().has_coefficients) {
    if (chunk.coefficients) {
      return conflict(resident_coefficients_ ? "the first message says where the coefficients are: send none"
                                             : "the first message has no coefficients: send none with the later ones");
    }
    if (!resident_coefficients_ || chunk.num_items <= *resident_coefficients_ - num_items_) return absl::OkStatus();
    return InvalidArgument("COEFFICIENTS_LENGTH", "coefficients.array",
                           StrCat("there are ", *resident_coefficients_, " coefficients for at least ",
                                  num_items_ + chunk.num_items, " elements: name as many as there are elements"));
  }
  if (!has_inline_values_) return conflict("the values are resident, and so have the coefficients to be: name them");
  const uint64_t came = chunk.coefficients ? chunk.coefficients->size() : 0;
  const uint64_t expected = chunk.num_items * work_->item_bytes();
  if (came == expected) return absl::OkStatus();
  return InvalidArgument("COEFFICIENTS_LENGTH", "coefficients.inline.data",
                         StrCat("the coefficients have ", came, " bytes for a chunk of ", chunk.num_items,
                                " elements: expected ", expected, ", one for each element"));
}

absl::Status ChunkChecker::CheckOffsets(Chunk* chunk) const {
  if (!work_->shape().has_offsets) {
    if (!chunk->offsets && !chunk->keys) return absl::OkStatus();
    return InvalidArgument("FIELD_CONFLICT", chunk->keys ? "keys.inline" : "segment_offsets.inline",
                           "the first message has no segments: send none with the later ones");
  }
  if (chunk->keys && !work_->shape().keys) {
    return InvalidArgument("FIELD_CONFLICT", "keys.inline",
                           "the first message has no keys: send none with the later ones");
  }
  if (work_->shape().keys) {
    if (chunk->offsets) {
      return InvalidArgument("FIELD_CONFLICT", "segment_offsets.inline", "the segments are of keys: send no offsets");
    }
    chunk->num_offsets = chunk->num_items + 1;
    return CheckKeys(*chunk);
  }
  if (resident_offsets_ || has_begun_) {
    if (chunk->offsets) {
      return InvalidArgument("FIELD_CONFLICT", "segment_offsets.inline",
                             "the first message says where the offsets are: send none");
    }
    chunk->num_offsets = has_begun_ ? 1 : *resident_offsets_;  // No segments come later.
    return absl::OkStatus();
  }
  const Payload offsets = chunk->offsets ? *chunk->offsets : Payload();
  PREFIXD_RETURN_IF_ERROR(CheckInlineOffsets(offsets, chunk->num_items));
  chunk->num_offsets = offsets.size() / sizeof(uint64_t);
  return absl::OkStatus();
}

absl::Status ChunkChecker::CheckKeys(const Chunk& chunk) const {
  const auto conflict = [](std::string_view why) { return InvalidArgument("FIELD_CONFLICT", "keys.inline", why); };
  if (resident_keys_ || has_begun_) {
    return chunk.keys ? conflict("the first message says where the keys are: send none") : absl::OkStatus();
  }
  if (!has_inline_values_) return conflict("the values are resident, and so have the keys to be: name them");
  const uint64_t came = chunk.keys ? chunk.keys->size() : 0;
  const uint64_t key_bytes = SizeOf(*work_->shape().keys);
  if (came / key_bytes != chunk.num_items || came % key_bytes != 0) {
    return InvalidArgument("KEYS_LENGTH", "keys.inline.data",
                           StrCat("the keys have ", came, " bytes for a chunk of ", chunk.num_items,
                                  " elements: expected ", chunk.num_items * key_bytes, ", one for each element"));
  }
  if (came <= kMaxReplyPayloadBytes) return absl::OkStatus();
  return InvalidArgument("KEYS_LENGTH", "keys.inline.data",
                         StrCat("there are ", came, " bytes of keys: expected at most ", kMaxReplyPayloadBytes,
                                " in a message, put them and the values into arrays"));
}

absl::Status ChunkChecker::Finish() const {
  if (resident_items_ && *resident_items_ != num_items_) {
    return InvalidArgument("COUNT_MISMATCH", "mask.inline.data",
                           StrCat("masks came for ", num_items_, " of ", *resident_items_, " resident elements"));
  }
  if (resident_mask_bytes_ && MaskBytes(*work_->shape().mask, num_items_) != *resident_mask_bytes_) {
    return InvalidArgument("MASK_LENGTH", "mask.array",
                           StrCat("the mask has ", *resident_mask_bytes_, " bytes for ", num_items_,
                                  " elements: name as many as there are elements"));
  }
  if (resident_coefficients_ && *resident_coefficients_ != num_items_) {
    return InvalidArgument("COEFFICIENTS_LENGTH", "coefficients.array",
                           StrCat("there are ", *resident_coefficients_, " coefficients for ", num_items_,
                                  " elements: name as many as there are elements"));
  }
  const std::optional<uint64_t> declared = NumItemsOf(work_->operation());
  if (declared && *declared != num_items_) {
    return InvalidArgument("COUNT_MISMATCH", "spec.num_items",
                           StrCat("declared ", *declared, " elements, but ", num_items_, " came"));
  }
  const std::optional<uint64_t> row_items = work_->shape().row_items;
  if (!has_begun_ || !row_items || num_items_ % *row_items == 0) return absl::OkStatus();
  return InvalidArgument(
      "SHAPE", "spec.row_items",
      StrCat("the elements end within row ", num_items_ / *row_items, ", of which ", num_items_ % *row_items,
             " came, and ", *row_items, " are expected: send whole rows, or say how many elements one has"));
}

}  // namespace prefixd
