#include "server/work/chunk_checker.h"

#include <optional>
#include <string_view>

#include "base/status.h"

namespace prefixd {
namespace {

absl::Status InvalidArgument(std::string_view reason, std::string_view field, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, reason, field, message);
}

}  // namespace

absl::Status ChunkChecker::Check(const Chunk& chunk) {
  const uint64_t item_bytes = work_->item_bytes();
  if (chunk.values.size() % item_bytes != 0) {
    return InvalidArgument("LENGTH_NOT_MULTIPLE", "values.inline.data",
                           StrCat(chunk.values.size(), " bytes are no whole number of ", Name(InputOf(work_->spec())),
                                  " elements: expected a multiple of ", item_bytes));
  }
  const uint64_t num_items = chunk.values.size() / item_bytes;
  if (chunk.first_item && *chunk.first_item != num_items_) {
    return InvalidArgument("CHUNK_OUT_OF_ORDER", "values.inline.first_item",
                           StrCat("the chunk says it starts at element ", *chunk.first_item, ", but ", num_items_,
                                  " came before it: send every chunk once, in order"));
  }
  const std::optional<uint64_t> declared = NumItemsOf(work_->spec());
  if (declared && num_items > *declared - num_items_) {
    return InvalidArgument("COUNT_MISMATCH", "spec.num_items",
                           StrCat("declared ", *declared, " elements, but at least ", num_items_ + num_items, " came"));
  }
  PREFIXD_RETURN_IF_ERROR(CheckMask(chunk, num_items));
  const uint64_t reply_bytes = num_items * work_->reply_bytes_per_item();
  if (shape_ == CallShape::kUnary && reply_bytes > kMaxReplyPayloadBytes) {
    return Error(absl::StatusCode::kOutOfRange, "REPLY_TOO_LARGE", "values.inline.data",
                 StrCat("the reply could have ", reply_bytes, " bytes of payload and a message holds ",
                        kMaxReplyPayloadBytes, ": use the streaming call"));
  }
  PREFIXD_RETURN_IF_ERROR(work_->CheckLength(num_items_ + num_items));
  num_items_ += num_items;
  return absl::OkStatus();
}

absl::Status ChunkChecker::CheckMask(const Chunk& chunk, uint64_t num_items) const {
  const std::optional<MaskKind> kind = work_->shape().mask;
  if (!kind) {
    if (!chunk.mask) return absl::OkStatus();
    return InvalidArgument("FIELD_CONFLICT", "mask",
                           "a predicate selects, so no mask is expected: send one or the other");
  }
  const uint64_t expected = MaskBytes(*kind, num_items);
  const uint64_t came = chunk.mask ? chunk.mask->size() : 0;
  if (came == expected) return absl::OkStatus();
  return InvalidArgument("MASK_LENGTH", "mask.inline.data",
                         StrCat("the mask has ", came, " bytes for a chunk of ", num_items, " elements: expected ",
                                expected, ", one ", *kind == MaskKind::kBits ? "bit" : "byte", " an element"));
}

absl::Status ChunkChecker::Finish() const {
  const std::optional<uint64_t> declared = NumItemsOf(work_->spec());
  if (!declared || *declared == num_items_) return absl::OkStatus();
  return InvalidArgument("COUNT_MISMATCH", "spec.num_items",
                         StrCat("declared ", *declared, " elements, but ", num_items_, " came"));
}

}  // namespace prefixd
