#include "server/lane_pool.h"

#include <utility>

#include "kernels/status.h"
#include "server/request.h"

namespace prefixd {
namespace {

constexpr size_t kScalarBytes = kMaxBatchSize * sizeof(ReduceState);

absl::StatusOr<StagingBlock> MakeBlock(Device& device, Lane& lane, size_t host_bytes, size_t device_bytes) {
  StagingBlock block;
  PREFIXD_ASSIGN_OR_RETURN(block.host, device.AllocatePinned(host_bytes));
  PREFIXD_ASSIGN_OR_RETURN(block.device, lane.Allocate(device_bytes));
  return block;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LanePool>> LanePool::Create(Device& device, int num_lanes, uint64_t staging_bytes) {
  std::unique_ptr<LanePool> pool(new LanePool(device));
  PREFIXD_ASSIGN_OR_RETURN(pool->replies_, StagingPool::Create(device, staging_bytes, kMaxReplyPayloadBytes));
  pool->lanes_.resize(num_lanes);
  for (BorrowedLane& lane : pool->lanes_) {
    PREFIXD_ASSIGN_OR_RETURN(lane.lane, device.CreateLane());
    lane.direct_bytes = device.info().direct_bytes;
    lane.replies = pool->replies_.get();
    const auto make = [&](size_t host_bytes, size_t device_bytes) {
      pool->lane_bytes_ += host_bytes;
      return MakeBlock(device, *lane.lane, host_bytes, device_bytes);
    };
    constexpr size_t kBytes = kMaxReplyPayloadBytes;
    PREFIXD_ASSIGN_OR_RETURN(lane.in, make(kBytes, kBytes + kMaxOpenGroupBytes));
    PREFIXD_ASSIGN_OR_RETURN(lane.mask, make(kBytes, kBytes));
    PREFIXD_ASSIGN_OR_RETURN(lane.values, make(kBytes, kBytes + kMaxOpenGroupBytes));
    PREFIXD_ASSIGN_OR_RETURN(lane.indices, make(kBytes, kBytes));
    PREFIXD_ASSIGN_OR_RETURN(lane.scalar, make(kScalarBytes, kScalarBytes));
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
  wake_first_.NotifyAll();
  wake_others_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void LanePool::Submit(TaskSize size, Task task) {
  bool wake_first = false;
  {
    MutexLock lock(mutex_);
    queues_[static_cast<size_t>(size)].push_back({num_submitted_++, std::move(task)});
    if (size == TaskSize::kSmall) wake_first = std::exchange(first_waits_, false);
  }
  (wake_first ? wake_first_ : wake_others_).NotifyOne();
}

std::deque<LanePool::QueuedTask>* LanePool::NextQueue(const BorrowedLane& lane) {
  auto& [small, large] = queues_;
  if (large.empty() || IsReserved(lane)) return small.empty() ? nullptr : &small;
  return !small.empty() && small.front().number < large.front().number ? &small : &large;
}

void LanePool::Wait(const BorrowedLane& lane) {
  if (!IsReserved(lane)) return wake_others_.Wait(mutex_);
  first_waits_ = true;
  wake_first_.Wait(mutex_);
  first_waits_ = false;
  // Another lane may have been woken for a large task and have taken the small one that this was woken for.
  const auto& [small, large] = queues_;
  if (small.empty() && !large.empty()) wake_others_.NotifyOne();
}

void LanePool::RunLane(BorrowedLane& lane) {
  while (true) {
    Task task;
    {
      MutexLock lock(mutex_);
      std::deque<QueuedTask>* queue = nullptr;
      while ((queue = NextQueue(lane)) == nullptr && !stopping_) Wait(lane);
      if (queue == nullptr) return;
      task = std::move(queue->front().task);
      queue->pop_front();
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
