// Arrays from files, a piece at a time: .npy, text with one number a line, raw little-endian bytes.
#ifndef PREFIXD_CLIENT_PREFIXCTL_ARRAY_READER_H_
#define PREFIXD_CLIENT_PREFIXCTL_ARRAY_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/prefixctl/file.h"
#include "kernels/types.h"

namespace prefixd::cli {

enum class Format { kNpy, kText, kRaw };
enum class Shapes { kLine, kMatrixToo };

// .npy; .txt and .csv as text; nothing for anything else.
std::optional<Format> FormatOfSuffix(std::string_view path);
// By suffix; without one that is known, "-" is text and anything else raw.
Format FormatOf(std::string_view path);

// Threads: one at a time.
// Errors:  of every method: INVALID_ARGUMENT for what the format does not allow, or the file system's; all name the
//          file, and text the line.
class ArrayReader {
 public:
  virtual ~ArrayReader() = default;

  // Up to max_items elements into `out`; fewer only at the end, where what should not follow is an error.
  virtual absl::StatusOr<size_t> Read(size_t max_items, std::byte* out) = 0;
  // Back to the first element; false where the file can't.
  virtual bool Rewind() = 0;

  DType dtype() const { return dtype_; }
  std::optional<uint64_t> num_items() const { return num_items_; }  // Where it is known before the end.
  std::optional<uint64_t> row_items() const { return row_items_; }  // Where the file says that it is a matrix.
  InputFile& file() const { return *file_; }

 protected:
  explicit ArrayReader(std::unique_ptr<InputFile> file) : file_(std::move(file)) {}

  std::unique_ptr<InputFile> file_;
  DType dtype_ = DType::kF64;
  std::optional<uint64_t> num_items_;
  std::optional<uint64_t> row_items_;
};

// An array of numbers. Without a type: a .npy file says it itself, text is f64, raw bytes need one.
// A .npy file may have one dimension, or with kMatrixToo two.
// Errors: also INVALID_ARGUMENT for another type than the .npy file's.
absl::StatusOr<std::unique_ptr<ArrayReader>> OpenArray(std::unique_ptr<InputFile> file, Format format,
                                                       std::optional<DType> dtype, Shapes shapes = Shapes::kLine);

// A mask, as bytes (dtype kU8): .npy of bool or u8, text of 0 and 1, raw bytes.
absl::StatusOr<std::unique_ptr<ArrayReader>> OpenMask(std::unique_ptr<InputFile> file, Format format);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_ARRAY_READER_H_
