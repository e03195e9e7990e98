// Arrays into files, a piece at a time, in the formats of array_reader.h.
#ifndef PREFIXD_CLIENT_PREFIXCTL_ARRAY_WRITER_H_
#define PREFIXD_CLIENT_PREFIXCTL_ARRAY_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/file.h"
#include "kernels/types.h"

namespace prefixd::cli {

// Errors: the file system's, naming the file.
class ArrayWriter {
 public:
  // num_items: how many will be written, where it is known. deadline: as OutputFile::Open. row_items: of a matrix,
  // whose num_items are known; a .npy file has two dimensions then.
  // Errors: INVALID_ARGUMENT for .npy of bf16, which NumPy has not, and for .npy into a pipe if num_items is not known:
  //         its header comes first.
  static absl::StatusOr<std::unique_ptr<ArrayWriter>> Open(const std::string& path, Format format, DType dtype,
                                                           std::optional<uint64_t> num_items,
                                                           absl::Time deadline = absl::InfiniteFuture(),
                                                           std::optional<uint64_t> row_items = {});

  // The next elements, cut anywhere: where they end within one, its rest comes next.
  absl::Status Write(client::Pieces elements);
  uint64_t ItemsWritten() const { return bytes_written_ / SizeOf(dtype_); }  // Whole ones.
  // Everything is in the file, which has not yet its name.
  // Needs: whole elements were written.
  absl::Status Close();
  // Gives the file its name. Needs: closed.
  absl::Status Commit() { return file_->Commit(); }

 private:
  ArrayWriter(std::unique_ptr<OutputFile> file, Format format, DType dtype)
      : file_(std::move(file)), format_(format), dtype_(dtype) {}

  void AppendText(std::string_view elements);

  std::unique_ptr<OutputFile> file_;
  const Format format_;
  const DType dtype_;
  std::optional<uint64_t> promised_items_;  // By the .npy header.
  uint64_t bytes_written_ = 0;              // As elements.
  std::string rest_;                        // The begun element, for text.
  std::string text_;
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_ARRAY_WRITER_H_
