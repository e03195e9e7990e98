#include "server/lanes/staging_pool.h"

#include <utility>

#include "base/status.h"

namespace prefixd {

struct StagingPool::LentBlock {
  LentBlock(std::shared_ptr<StagingPool> lender, Buffer full) : pool(std::move(lender)), block(std::move(full)) {}
  ~LentBlock() { pool->TakeBack(std::move(block)); }
  LentBlock(const LentBlock&) = delete;
  LentBlock& operator=(const LentBlock&) = delete;

  std::shared_ptr<StagingPool> pool;
  Buffer block;
};

absl::StatusOr<std::shared_ptr<StagingPool>> StagingPool::Create(Device& device, uint64_t size_bytes,
                                                                 uint64_t block_bytes) {
  std::shared_ptr<StagingPool> pool(new StagingPool(block_bytes));
  MutexLock lock(pool->mutex_);
  for (pool->num_blocks_ = 0; pool->num_blocks_ < size_bytes / block_bytes; ++pool->num_blocks_) {
    PREFIXD_ASSIGN_OR_RETURN(Buffer block, device.AllocatePinned(block_bytes));
    pool->empty_.push_back(std::move(block));
  }
  return pool;
}

std::shared_ptr<const void> StagingPool::Exchange(Buffer* block) {
  Buffer empty;
  {
    MutexLock lock(mutex_);
    if (empty_.empty()) return nullptr;
    empty = std::move(empty_.back());
    empty_.pop_back();
  }
  std::swap(*block, empty);
  return std::make_shared<LentBlock>(shared_from_this(), std::move(empty));
}

uint64_t StagingPool::used_bytes() const {
  MutexLock lock(mutex_);
  return (num_blocks_ - empty_.size()) * block_bytes_;
}

void StagingPool::TakeBack(Buffer block) {
  MutexLock lock(mutex_);
  empty_.push_back(std::move(block));
}

}  // namespace prefixd
