// One number a line.
#ifndef PREFIXD_CLIENT_PREFIXCTL_TEXT_READER_H_
#define PREFIXD_CLIENT_PREFIXCTL_TEXT_READER_H_

#include <memory>
#include <string>
#include <string_view>

#include "client/prefixctl/array_reader.h"

namespace prefixd::cli {

// Empty lines are skipped; blanks around a number and a carriage return behind it are allowed.
class TextReader : public ArrayReader {
 public:
  using Parse = absl::StatusOr<Value> (*)(DType dtype, std::string_view word);

  TextReader(std::unique_ptr<InputFile> file, DType dtype, Parse parse);
  absl::StatusOr<size_t> Read(size_t max_items, std::byte* out) override;
  bool Rewind() override;

 private:
  // The next line without its end; false if there is none.
  absl::StatusOr<bool> NextLine(std::string_view* line);

  const Parse parse_;
  std::string buffer_;
  size_t position_ = 0;  // Where the next line begins in the buffer.
  bool at_end_ = false;
  uint64_t line_number_ = 0;
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_TEXT_READER_H_
