#include "client/prefixctl/raw_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/status.h"

namespace prefixd::cli {

RawReader::RawReader(std::unique_ptr<InputFile> file, DType dtype)
    : ArrayReader(std::move(file)), first_byte_(file_->bytes_read()) {
  dtype_ = dtype;
}

absl::StatusOr<std::unique_ptr<ArrayReader>> RawReader::Create(std::unique_ptr<InputFile> file, DType dtype,
                                                               std::optional<uint64_t> num_items,
                                                               std::optional<uint64_t> row_items) {
  std::unique_ptr<RawReader> reader(new RawReader(std::move(file), dtype));
  reader->row_items_ = row_items;
  const std::string& name = reader->file_->name();
  const uint64_t item_bytes = SizeOf(dtype);
  if (num_items && *num_items > std::numeric_limits<int64_t>::max() / item_bytes) {
    return absl::InvalidArgumentError(StrCat(name, ": the shape is out of reason"));
  }
  if (const auto size_bytes = reader->file_->size_bytes()) {
    const uint64_t data_bytes = *size_bytes - std::min(*size_bytes, reader->first_byte_);
    if (num_items && data_bytes != *num_items * item_bytes) {
      return absl::InvalidArgumentError(StrCat(name, ": the header says ", *num_items, " elements of ", item_bytes,
                                               " bytes, but ", data_bytes, " bytes follow it"));
    }
    if (data_bytes % item_bytes != 0) {
      return absl::InvalidArgumentError(
          StrCat(name, ": its ", data_bytes, " bytes are no multiple of the ", item_bytes, " of an element"));
    }
    num_items = data_bytes / item_bytes;
  }
  reader->num_items_ = num_items;
  return reader;
}

absl::StatusOr<size_t> RawReader::Read(size_t max_items, std::byte* out) {
  if (num_items_) max_items = std::min<uint64_t>(max_items, *num_items_ - items_read_);
  PREFIXD_ASSIGN_OR_RETURN(const size_t count_bytes, file_->Read(out, max_items * SizeOf(dtype_)));
  const size_t count = count_bytes / SizeOf(dtype_);
  items_read_ += count;
  if (count_bytes % SizeOf(dtype_) != 0) {
    return absl::InvalidArgumentError(StrCat(file_->name(), ": it ends in the middle of an element"));
  }
  if (!num_items_) return count;
  if (count < max_items) {
    return absl::InvalidArgumentError(
        StrCat(file_->name(), ": truncated: it ends after ", items_read_, " of ", *num_items_, " elements"));
  }
  if (items_read_ == *num_items_ && !checked_end_) {
    std::byte extra;
    PREFIXD_ASSIGN_OR_RETURN(const size_t extra_bytes, file_->Read(&extra, 1));
    if (extra_bytes != 0) {
      return absl::InvalidArgumentError(StrCat(file_->name(), ": there is more behind its ", *num_items_, " elements"));
    }
    checked_end_ = true;
  }
  return count;
}

bool RawReader::Rewind() {
  if (!file_->Seek(first_byte_)) return false;
  items_read_ = 0;
  checked_end_ = false;
  return true;
}

}  // namespace prefixd::cli
