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
  if (beside_ != nullptr) {
    PREFIXD_ASSIGN_OR_RETURN(auto beside, ReadBeside(values.count, chunk.last));
    (what_ == Beside::kMask ? chunk.mask : chunk.coefficients) =
        client::Bytes(beside.get(), values.count * SizeOf(beside_->dtype()));
    chunk.owner =
        std::make_shared<std::pair<decltype(beside), decltype(beside)>>(std::move(values.data), std::move(beside));
  }
  progress_.Update(values_.file().bytes_read(), values_.file().size_bytes());
  return chunk;
}

absl::StatusOr<std::shared_ptr<const std::byte>> FileSource::ReadBeside(size_t count, bool last) {
  // At the end of the values, one entry more than is due tells whether the other file ends too.
  const size_t wanted = last ? count + 1 : count;
  std::shared_ptr<std::byte> block = NewBlock(wanted * SizeOf(beside_->dtype()));
  PREFIXD_ASSIGN_OR_RETURN(const size_t found, beside_->Read(wanted, block.get()));
  if (found == count) return block;
  const bool is_mask = what_ == Beside::kMask;
  return Error(absl::StatusCode::kInvalidArgument, is_mask ? "MASK_LENGTH" : "COEFFICIENTS_LENGTH",
               is_mask ? "mask" : "coefficients",
               StrCat(is_mask ? "the mask " : "the file of coefficients ", beside_->file().name(), " has ",
                      found < count ? "fewer" : "more", " entries than ", values_.file().name(), " has elements: it ",
                      found < count ? StrCat("ends after ", items_read_ - count + found)
                                    : StrCat("goes on after ", items_read_)));
}

bool FileSource::Rewind() {
  items_read_ = 0;
  ahead_.clear();
  return values_.Rewind() && (beside_ == nullptr || beside_->Rewind());
}

void FileSource::Interrupt() {
  values_.file().Interrupt();
  if (beside_ != nullptr) beside_->file().Interrupt();
}

}  // namespace prefixd::cli
