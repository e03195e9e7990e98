#include "client/prefixctl/array_writer.h"

#include <algorithm>

#include "base/status.h"
#include "client/prefixctl/npy.h"
#include "client/prefixctl/number.h"

namespace prefixd::cli {

absl::StatusOr<std::unique_ptr<ArrayWriter>> ArrayWriter::Open(const std::string& path, Format format, DType dtype,
                                                               std::optional<uint64_t> num_items, absl::Time deadline,
                                                               std::optional<uint64_t> row_items) {
  if (format == Format::kNpy && dtype == DType::kBF16) {
    return absl::InvalidArgumentError(StrCat(path, ": NumPy has no bf16: choose raw or text, or --out-type f32"));
  }
  PREFIXD_ASSIGN_OR_RETURN(auto file, OutputFile::Open(path, deadline));
  std::unique_ptr<ArrayWriter> writer(new ArrayWriter(std::move(file), format, dtype));
  if (format == Format::kNpy) {
    if (!num_items && !writer->file_->can_rewrite()) {
      return absl::InvalidArgumentError(StrCat(
          path,
          ": a .npy header begins with the length, which is not known yet: write to a file, or choose raw or text"));
    }
    writer->promised_items_ = num_items.value_or(0);
    PREFIXD_RETURN_IF_ERROR(writer->file_->Write(FormatNpyHeader(dtype, *writer->promised_items_, row_items)));
  }
  return writer;
}

absl::Status ArrayWriter::Write(client::Pieces elements) {
  bytes_written_ += client::NumBytes(elements);
  if (format_ != Format::kText) return file_->Write(elements);
  text_.clear();
  for (const std::string_view piece : elements) AppendText(piece);
  return file_->Write(text_);
}

void ArrayWriter::AppendText(std::string_view elements) {
  const size_t item_bytes = SizeOf(dtype_);
  const auto append = [&](const char* element) {
    AppendNumber(dtype_, reinterpret_cast<const std::byte*>(element), &text_);
    text_ += '\n';
  };
  if (!rest_.empty()) {
    const size_t missing = std::min(item_bytes - rest_.size(), elements.size());
    rest_.append(elements.substr(0, missing));
    elements.remove_prefix(missing);
    if (rest_.size() < item_bytes) return;
    append(rest_.data());
    rest_.clear();
  }
  for (; elements.size() >= item_bytes; elements.remove_prefix(item_bytes)) append(elements.data());
  rest_ = elements;
}

absl::Status ArrayWriter::Close() {
  if (promised_items_ && *promised_items_ != ItemsWritten()) {
    PREFIXD_RETURN_IF_ERROR(file_->Rewrite(FormatNpyHeader(dtype_, ItemsWritten())));
  }
  return file_->Close();
}

}  // namespace prefixd::cli
