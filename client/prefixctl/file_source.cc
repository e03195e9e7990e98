#include "client/prefixctl/file_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"

namespace prefixd::cli {

namespace {

// Each chunk has a block of its own, for gRPC sends from it while the next one is read.
std::shared_ptr<std::byte> NewBlock(size_t size_bytes) {
  return {new std::byte[size_bytes], std::default_delete<std::byte[]>()};
}

}  // namespace

absl::StatusOr<FileSource::Values> FileSource::NextValues(size_t max_items) {
  const size_t item_bytes = SizeOf(values_.dtype());
  const std::optional<uint64_t> num_items = values_.num_items();
  if (num_items) max_items = std::min<uint64_t>(max_items, *num_items - items_read_);
  // Where the length is not known, one element more than is due tells whether this chunk is the last.
  const size_t wanted = num_items ? max_items : max_items + 1;
  const std::shared_ptr<std::byte> block = NewBlock(wanted * item_bytes);
  std::ranges::copy(ahead_, block.get());
  const size_t num_ahead = ahead_.size() / item_bytes;
  PREFIXD_ASSIGN_OR_RETURN(size_t count, values_.Read(wanted - num_ahead, block.get() + ahead_.size()));
  count += num_ahead;
  ahead_.clear();
  if (count > max_items) {
    const std::byte* const last = block.get() + max_items * item_bytes;
    ahead_.assign(last, last + item_bytes);
    count = max_items;
  }
  return Values{block, count};
}

absl::StatusOr<client::Chunk> FileSource::Next(size_t max_items) {
  PREFIXD_ASSIGN_OR_RETURN(Values values, NextValues(max_items));
  items_read_ += values.count;
  const std::optional<uint64_t> num_items = values_.num_items();
  client::Chunk chunk = {client::Bytes(values.data.get(), values.count * SizeOf(values_.dtype()))};
  chunk.last = num_items ? items_read_ == *num_items : ahead_.empty();
  chunk.owner = values.data;
  if (mask_ != nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(auto mask, ReadMask(values.count, chunk.last));
    chunk.mask = client::Bytes(mask.get(), values.count);
    chunk.owner = std::make_shared<std::pair<decltype(mask), decltype(mask)>>(std::move(values.data), std::move(mask));
  }
  progress_.Update(values_.file().bytes_read(), values_.file().size_bytes());
  return chunk;
}

absl::StatusOr<std::shared_ptr<const std::byte>> FileSource::ReadMask(size_t count, bool last) {
  // At the end of the values, one entry more than is due tells whether the mask ends too.
  const size_t wanted = last ? count + 1 : count;
  std::shared_ptr<std::byte> block = NewBlock(wanted);
  PREFIXD_ASSIGN_OR_RETURN(const size_t mask_count, mask_->Read(wanted, block.get()));
  if (mask_count == count) return block;
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
