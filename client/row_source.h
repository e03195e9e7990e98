// Some of the rows of a source, as the source of a call of their own. Private to the library.
#ifndef PREFIXD_CLIENT_ROW_SOURCE_H_
#define PREFIXD_CLIENT_ROW_SOURCE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "client/chunk.h"

namespace prefixd::client {

// The next max_items elements of `all`, or fewer at its end.
// Owns:    nothing; `all` outlives it.
// Threads: as ChunkSource.
class RowSource : public ChunkSource {
 public:
  // may_rewind: these are its first elements.
  RowSource(ChunkSource& all, size_t item_bytes, uint64_t max_items, bool may_rewind)
      : all_(all), item_bytes_(item_bytes), max_items_(max_items), may_rewind_(may_rewind) {}

  absl::StatusOr<Chunk> Next(size_t max_items) override {
    const uint64_t wanted = std::min<uint64_t>(max_items, max_items_ - num_items_);
    PREFIXD_ASSIGN_OR_RETURN(Chunk chunk, all_.Next(wanted));
    const uint64_t count = chunk.values.size() / item_bytes_;
    num_items_ += count;
    is_end_of_all_ = chunk.last || count < wanted;
    chunk.last = is_end_of_all_ || num_items_ == max_items_;
    is_done_ = chunk.last;
    return chunk;
  }
  bool Rewind() override {
    if (!may_rewind_ || !all_.Rewind()) return false;
    num_items_ = 0;
    is_done_ = false;
    return true;
  }
  bool MayBlock() const override { return all_.MayBlock(); }
  // Comes at the end of each stream too, and then the others of `all` are still to be read.
  void Interrupt() override {
    if (!is_done_) all_.Interrupt();
  }

  // Nothing of `all` is left.
  bool IsEndOfAll() const { return is_end_of_all_; }

 private:
  ChunkSource& all_;
  const size_t item_bytes_;
  const uint64_t max_items_;
  const bool may_rewind_;
  uint64_t num_items_ = 0;  // Given out so far.
  bool is_end_of_all_ = false;
  std::atomic<bool> is_done_ = false;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ROW_SOURCE_H_
