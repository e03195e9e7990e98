// An array in memory as a source of chunks. Private to the library.
#ifndef PREFIXD_CLIENT_MEMORY_SOURCE_H_
#define PREFIXD_CLIENT_MEMORY_SOURCE_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/statusor.h"
#include "client/chunk.h"
#include "kernels/spec.h"

namespace prefixd::client {

// Owns:    nothing: what it is made of must outlive it.
// Threads: as ChunkSource.
class MemorySource : public ChunkSource {
 public:
  MemorySource(Bytes values, size_t item_bytes, Bytes mask = {}, MaskKind mask_kind = MaskKind::kBytes)
      : values_(values), item_bytes_(item_bytes), mask_(mask), mask_kind_(mask_kind) {}
  // coefficients: as many bytes as there are of values, or none.
  MemorySource(Bytes values, Bytes coefficients, size_t item_bytes)
      : values_(values), item_bytes_(item_bytes), coefficients_(coefficients) {}

  absl::StatusOr<Chunk> Next(size_t max_items) override {
    const size_t num_items = values_.size() / item_bytes_;
    const size_t count = std::min(max_items, num_items - next_item_);
    Chunk chunk = {values_.subspan(next_item_ * item_bytes_, count * item_bytes_)};
    if (!mask_.empty()) {
      chunk.mask = mask_.subspan(MaskBytes(mask_kind_, next_item_), MaskBytes(mask_kind_, count));
    }
    if (!coefficients_.empty()) {
      chunk.coefficients = coefficients_.subspan(next_item_ * item_bytes_, count * item_bytes_);
    }
    next_item_ += count;
    chunk.last = next_item_ == num_items;
    return chunk;
  }
  bool MayBlock() const override { return false; }
  bool Rewind() override {
    next_item_ = 0;
    return true;
  }

 private:
  const Bytes values_;
  const size_t item_bytes_;
  const Bytes mask_;
  const MaskKind mask_kind_ = MaskKind::kBytes;
  const Bytes coefficients_;
  size_t next_item_ = 0;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_MEMORY_SOURCE_H_
