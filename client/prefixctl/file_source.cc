#include "client/prefixctl/file_source.h"

#include <algorithm>
#include <optional>

#include "base/status.h"

namespace prefixd::cli {

absl::StatusOr<client::Chunk> FileSource::Next(size_t max_items) {
  const size_t item_bytes = SizeOf(values_.dtype());
  const std::optional<uint64_t> num_items = values_.num_items();
  // Where the length is not known, one element more than is due tells whether this chunk is the last.
  const size_t wanted = num_items ? max_items : max_items + 1;
  value_buffer_.resize(wanted * item_bytes);
  std::ranges::copy(ahead_, value_buffer_.begin());
  const size_t num_ahead = ahead_.size() / item_bytes;
  PREFIXD_ASSIGN_OR_RETURN(size_t count, values_.Read(wanted - num_ahead, value_buffer_.data() + ahead_.size()));
  count += num_ahead;
  ahead_.clear();
  if (count > max_items) {
    const std::byte* const last = value_buffer_.data() + max_items * item_bytes;
    ahead_.assign(last, last + item_bytes);
    count = max_items;
  }
  items_read_ += count;
  client::Chunk chunk = {client::Bytes(value_buffer_.data(), count * item_bytes)};
  chunk.last = num_items ? items_read_ == *num_items : ahead_.empty();
  if (mask_ != nullptr) {
    PREFIXD_RETURN_IF_ERROR(ReadMask(count, chunk.last));
    chunk.mask = client::Bytes(mask_buffer_.data(), count);
  }
  progress_.Update(values_.file().bytes_read(), values_.file().size_bytes());
  return chunk;
}

absl::Status FileSource::ReadMask(size_t count, bool last) {
  // At the end of the values, one entry more than is due tells whether the mask ends too.
  const size_t wanted = last ? count + 1 : count;
  mask_buffer_.resize(wanted);
  PREFIXD_ASSIGN_OR_RETURN(const size_t mask_count, mask_->Read(wanted, mask_buffer_.data()));
  if (mask_count == count) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask",
               StrCat("the mask ", mask_->file().name(), " has ", mask_count < count ? "fewer" : "more",
                      " entries than ", values_.file().name(), " has elements: it ",
                      mask_count < count ? StrCat("ends after ", items_read_ - count + mask_count)
                                         : StrCat("goes on after ", items_read_)));
}

bool FileSource::Rewind() {
  items_read_ = 0;
  ahead_.clear();
  return values_.Rewind() && (mask_ == nullptr || mask_->Rewind());
}

void FileSource::Interrupt() {
  values_.file().Interrupt();
  if (mask_ != nullptr) mask_->file().Interrupt();
}

}  // namespace prefixd::cli
