#include "server/lane_pool.h"

#include "kernels/status.h"
#include "server/request.h"

namespace prefixd {
namespace {

constexpr size_t kScalarBytes = 64;

absl::StatusOr<StagingBlock> MakeBlock(Device& device, Lane& lane, size_t size_bytes) {
  StagingBlock block;
  PREFIXD_ASSIGN_OR_RETURN(block.host, device.AllocatePinned(size_bytes));
  PREFIXD_ASSIGN_OR_RETURN(block.device, lane.Allocate(size_bytes));
  return block;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LanePool>> LanePool::Create(Device& device, int num_lanes) {
  std::unique_ptr<LanePool> pool(new LanePool(device));
  pool->lanes_.resize(num_lanes);
  for (BorrowedLane& lane : pool->lanes_) {
    PREFIXD_ASSIGN_OR_RETURN(lane.lane, device.CreateLane());
    for (StagingBlock* block : {&lane.in, &lane.mask, &lane.values, &lane.indices}) {
      PREFIXD_ASSIGN_OR_RETURN(*block, MakeBlock(device, *lane.lane, kMaxReplyPayloadBytes));
      pool->staging_bytes_ += block->host.size_bytes();
    }
    PREFIXD_ASSIGN_OR_RETURN(lane.scalar, MakeBlock(device, *lane.lane, kScalarBytes));
    pool->staging_bytes_ += kScalarBytes;
    PREFIXD_RETURN_IF_ERROR(lane.lane->Synchronize());
  }
  pool->LookAtMemory();
  for (BorrowedLane& lane : pool->lanes_) {
    pool->threads_.emplace_back([pool = pool.get(), &lane] { pool->RunLane(lane); });
  }
  return pool;
}

LanePool::~LanePool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void LanePool::Submit(Task task) {
  {
    MutexLock lock(mutex_);
    queue_.push_back(std::move(task));
  }
  wake_.NotifyOne();
}

void LanePool::RunLane(BorrowedLane& lane) {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) wake_.Wait(mutex_);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task(lane);
    LookAtMemory();
  }
}

void LanePool::LookAtMemory() {
  const auto now = std::chrono::steady_clock::now();
  auto last = looked_at_memory_.load(std::memory_order_relaxed);
  if (now - last < std::chrono::seconds(1)) return;
  if (!looked_at_memory_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  free_memory_bytes_.store(device_.FreeMemoryBytes(), std::memory_order_relaxed);
}

}  // namespace prefixd
