// Pinned blocks that replies are sent from without a copy. A lane exchanges the block that it has filled for an empty
// one. gRPC sends from the full block, which returns to the pool once it is sent. If no block is empty, the lane keeps
// its own and the reply is a copy. So callers that read slowly can use up the blocks, but they hold up nobody else.
//
// Threads: any.
// Ownership: blocks that are out keep the pool alive.
#ifndef PREFIXD_SERVER_LANES_STAGING_POOL_H_
#define PREFIXD_SERVER_LANES_STAGING_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kernels/device.h"

namespace prefixd {

class StagingPool : public std::enable_shared_from_this<StagingPool> {
 public:
  // Pins as many blocks of block_bytes as fit size_bytes.
  // Errors: those of the device (no memory).
  static absl::StatusOr<std::shared_ptr<StagingPool>> Create(Device& device, uint64_t size_bytes, uint64_t block_bytes);

  // Puts an empty block into *block, and returns the full one: it goes back to the pool when the result is destroyed.
  // Returns null and leaves *block alone if no block is empty. Needs: *block has block_bytes.
  std::shared_ptr<const void> Exchange(Buffer* block);

  uint64_t size_bytes() const { return num_blocks_ * block_bytes_; }
  // Bytes of the blocks that replies are sent from.
  uint64_t used_bytes() const;

 private:
  struct LentBlock;
  explicit StagingPool(uint64_t block_bytes) : block_bytes_(block_bytes) {}
  void TakeBack(Buffer block);

  const uint64_t block_bytes_;
  uint64_t num_blocks_ = 0;
  mutable Mutex mutex_;
  std::vector<Buffer> empty_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_STAGING_POOL_H_
