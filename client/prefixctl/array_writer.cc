#include "client/prefixctl/array_writer.h"

#include "base/status.h"
#include "client/prefixctl/npy.h"
#include "client/prefixctl/number.h"

namespace prefixd::cli {

absl::StatusOr<std::unique_ptr<ArrayWriter>> ArrayWriter::Open(const std::string& path, Format format, DType dtype,
                                                               std::optional<uint64_t> num_items, absl::Time deadline) {
  PREFIXD_ASSIGN_OR_RETURN(auto file, OutputFile::Open(path, deadline));
  std::unique_ptr<ArrayWriter> writer(new ArrayWriter(std::move(file), format, dtype));
  if (format == Format::kNpy) {
    if (!num_items && !writer->file_->can_rewrite()) {
      return absl::InvalidArgumentError(StrCat(
          path,
          ": a .npy header begins with the length, which is not known yet: write to a file, or choose raw or text"));
    }
    writer->promised_items_ = num_items.value_or(0);
    PREFIXD_RETURN_IF_ERROR(writer->file_->Write(FormatNpyHeader(dtype, *writer->promised_items_)));
  }
  return writer;
}

absl::Status ArrayWriter::Write(client::Bytes elements) {
  const size_t item_bytes = SizeOf(dtype_);
  items_written_ += elements.size() / item_bytes;
  if (format_ != Format::kText) {
    return file_->Write({reinterpret_cast<const char*>(elements.data()), elements.size()});
  }
  text_.clear();
  for (size_t i = 0; i < elements.size(); i += item_bytes) {
    AppendNumber(dtype_, elements.data() + i, &text_);
    text_ += '\n';
  }
  return file_->Write(text_);
}

absl::Status ArrayWriter::Close() {
  if (promised_items_ && *promised_items_ != items_written_) {
    PREFIXD_RETURN_IF_ERROR(file_->Rewrite(FormatNpyHeader(dtype_, items_written_)));
  }
  return file_->Close();
}

}  // namespace prefixd::cli
