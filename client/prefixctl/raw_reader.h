// Packed little-endian elements, behind a header or not.
#ifndef PREFIXD_CLIENT_PREFIXCTL_RAW_READER_H_
#define PREFIXD_CLIENT_PREFIXCTL_RAW_READER_H_

#include <memory>
#include <optional>

#include "client/prefixctl/array_reader.h"

namespace prefixd::cli {

class RawReader : public ArrayReader {
 public:
  // Reads from where the file is; num_items is what the header promised, nothing if there is none.
  // Errors: INVALID_ARGUMENT if a regular file's size is another.
  static absl::StatusOr<std::unique_ptr<ArrayReader>> Create(std::unique_ptr<InputFile> file, DType dtype,
                                                             std::optional<uint64_t> num_items,
                                                             std::optional<uint64_t> row_items = {});

  absl::StatusOr<size_t> Read(size_t max_items, std::byte* out) override;
  bool Rewind() override;

 private:
  RawReader(std::unique_ptr<InputFile> file, DType dtype);

  const uint64_t first_byte_;
  uint64_t items_read_ = 0;
  bool checked_end_ = false;
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_RAW_READER_H_
