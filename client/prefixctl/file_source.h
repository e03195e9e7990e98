// The array of a file, and its mask or coefficients, as the client's source of chunks.
#ifndef PREFIXD_CLIENT_PREFIXCTL_FILE_SOURCE_H_
#define PREFIXD_CLIENT_PREFIXCTL_FILE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/prefixctl/array_reader.h"
#include "client/prefixctl/progress.h"

namespace prefixd::cli {

// Owns:   nothing of a chunk that was given out, which owns itself; the readers and the progress are the caller's.
// Errors: the readers'; INVALID_ARGUMENT (MASK_LENGTH, COEFFICIENTS_LENGTH) unless they have exactly one entry for each
//         element.
class FileSource : public client::ChunkSource {
 public:
  // What stands beside the values in another file.
  enum class Beside { kNothing, kMask, kCoefficients };
  FileSource(ArrayReader& values, Progress& progress) : values_(values), progress_(progress) {}
  FileSource(ArrayReader& values, Beside what, ArrayReader& beside, Progress& progress)
      : values_(values), what_(what), beside_(&beside), progress_(progress) {}

  absl::StatusOr<client::Chunk> Next(size_t max_items) override;
  bool Rewind() override;
  void Interrupt() override;

  uint64_t items_read() const { return items_read_; }

 private:
  // The values of the next chunk, and how many.
  struct Values {
    std::shared_ptr<const std::byte> data;
    size_t count = 0;
  };
  absl::StatusOr<Values> NextValues(size_t max_items);
  absl::StatusOr<std::shared_ptr<const std::byte>> ReadBeside(size_t count, bool last);

  ArrayReader& values_;
  const Beside what_ = Beside::kNothing;
  ArrayReader* const beside_ = nullptr;  // Null: kNothing.
  Progress& progress_;
  uint64_t items_read_ = 0;
  std::vector<std::byte> ahead_;  // The next chunk's first element, where it has been read already.
};

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_FILE_SOURCE_H_
