#include "client/prefixctl/text_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "client/prefixctl/number.h"

namespace prefixd::cli {
namespace {

constexpr size_t kBufferBytes = 65536;
constexpr size_t kMaxLineBytes = 4096;  // No number needs more, and a file without lines must not fill the memory.

}  // namespace

TextReader::TextReader(std::unique_ptr<InputFile> file, DType dtype, Parse parse)
    : ArrayReader(std::move(file)), parse_(parse) {
  dtype_ = dtype;
}

absl::StatusOr<bool> TextReader::NextLine(std::string_view* line) {
  size_t end = buffer_.find('\n', position_);
  if (end == std::string::npos && !at_end_) {
    buffer_.erase(0, position_);
    position_ = 0;
    const size_t kept = buffer_.size();
    buffer_.resize(kBufferBytes);
    auto* const free = reinterpret_cast<std::byte*>(buffer_.data() + kept);
    PREFIXD_ASSIGN_OR_RETURN(const size_t count, file_->Read(free, kBufferBytes - kept));
    at_end_ = count < kBufferBytes - kept;
    buffer_.resize(kept + count);
    end = buffer_.find('\n');
  }
  if (position_ == buffer_.size()) return false;
  // Some editors mark UTF-8 so.
  if (++line_number_ == 1 && std::string_view(buffer_).starts_with("\xef\xbb\xbf")) position_ += 3;
  *line = std::string_view(buffer_).substr(position_, end - position_);
  if (line->size() > kMaxLineBytes) {
    return absl::InvalidArgumentError(
        StrCat(file_->name(), ":", line_number_, ": the line is longer than ", kMaxLineBytes, " bytes"));
  }
  position_ = std::min(buffer_.size(), position_ + line->size() + 1);
  return true;
}

absl::StatusOr<size_t> TextReader::Read(size_t max_items, std::byte* out) {
  size_t count = 0;
  std::string_view line;
  while (count < max_items) {
    PREFIXD_ASSIGN_OR_RETURN(const bool more, NextLine(&line));
    if (!more) break;
    const std::string_view word = Trim(line);
    if (word.empty()) continue;
    const absl::StatusOr<Value> value = parse_(dtype_, word);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          StrCat(file_->name(), ":", line_number_, ": ", std::string(value.status().message())));
    }
    std::memcpy(out + count * SizeOf(dtype_), &value->bits, SizeOf(dtype_));
    ++count;
  }
  return count;
}

bool TextReader::Rewind() {
  if (!file_->Seek(0)) return false;
  buffer_.clear();
  position_ = 0;
  at_end_ = false;
  line_number_ = 0;
  return true;
}

}  // namespace prefixd::cli
