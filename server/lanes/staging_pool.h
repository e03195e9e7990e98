// Pinned memory that leaves with a reply: a lane that has filled a block of its own takes an empty one in its place,
// and gRPC sends from the full one, which comes back when it has been sent. Where none is empty the lane keeps its
// block and the reply is a copy: callers that read slowly can take this memory, but never hold up another's work.
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

  // Puts an empty block in the place of *block, and returns the full one, which lives as long as what is returned.
  // Null, and *block as it was, if there is none. Needs: *block has block_bytes.
  std::shared_ptr<const void> Exchange(Buffer* block);

  uint64_t size_bytes() const { return num_blocks_ * block_bytes_; }
  // In the blocks that are out.
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
