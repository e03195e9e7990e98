#include "server/lanes/lane_pool.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "server/request.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

// If a thread that yields has not got its core back by then, others have work for it.
constexpr std::chrono::microseconds kMaxYield{50};

// Looks at the flag until it is set or the time is up. False: it gave up, for others want the core.
bool Poll(const std::atomic<bool>& flag, std::chrono::microseconds time) {
  const auto start = Clock::now();
  for (auto last = start; !flag.load(std::memory_order_relaxed) && last - start < time;) {
    std::this_thread::yield();
    const auto now = Clock::now();
    if (now - last >= kMaxYield) return false;
    last = now;
  }
  return true;
}

constexpr size_t kScalarBytes = kMaxBatchSize * sizeof(ReduceState);

absl::StatusOr<StagingBlock> MakeBlock(Device& device, Lane& lane, size_t host_bytes, size_t device_bytes) {
  StagingBlock block;
  PREFIXD_ASSIGN_OR_RETURN(block.host, device.AllocatePinned(host_bytes));
  PREFIXD_ASSIGN_OR_RETURN(block.device, lane.Allocate(device_bytes));
  return block;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LanePool>> LanePool::Create(Device& device, int num_lanes, uint64_t staging_bytes,
                                                           std::chrono::microseconds poll_time,
                                                           std::chrono::milliseconds small_gap) {
  std::unique_ptr<LanePool> pool(new LanePool(device, poll_time, small_gap));
  PREFIXD_ASSIGN_OR_RETURN(pool->replies_, StagingPool::Create(device, staging_bytes, kMaxReplyPayloadBytes));
  for (int i = 0; i < num_lanes; ++i) {
    BorrowedLane& lane = pool->workers_.emplace_back(std::make_unique<Worker>())->lane;
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
  for (const auto& worker : pool->workers_) {
    worker->thread = std::thread([pool = pool.get(), worker = worker.get()] { pool->RunLane(*worker); });
  }
  return pool;
}

LanePool::~LanePool() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (const auto& worker : workers_) worker->wake.NotifyOne();
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();  // It is not where Create failed.
  }
}

void LanePool::Submit(TaskSize size, Task task) {
  Workers given;
  {
    MutexLock lock(mutex_);
    (size == TaskSize::kSmall ? small_ : others_).push_back({num_submitted_++, size, std::move(task)});
    given = HandOut();
  }
  for (Worker* worker : given) worker->wake.NotifyOne();
}

LanePool::Load LanePool::load() const {
  MutexLock lock(mutex_);
  Load load = {.waiting = small_.size() + others_.size()};
  for (const auto& worker : workers_) load.busy += !worker->idle;
  return load;
}

void LanePool::NoteSmallRequest() {
  const auto now = Clock::now();
  if (now - last_small_request_.exchange(now, std::memory_order_relaxed) < small_gap_) {
    make_room_until_.store(now + small_gap_, std::memory_order_relaxed);
  }
}

bool LanePool::MayRun(TaskSize size) const {
  if (size == TaskSize::kMeasurement) return true;
  const bool make_room = Clock::now() < make_room_until_.load(std::memory_order_relaxed);
  return num_large_running_ < (make_room ? std::max(num_lanes() / 3, 1) : num_lanes());
}

std::deque<LanePool::QueuedTask>* LanePool::NextQueue(const Worker& worker) {
  if (others_.empty() || IsReserved(worker) || !MayRun(others_.front().size)) return small_.empty() ? nullptr : &small_;
  return !small_.empty() && small_.front().number < others_.front().number ? &small_ : &others_;
}

LanePool::Task LanePool::TakeQueued(Worker& worker) {
  std::deque<QueuedTask>* const queue = NextQueue(worker);
  if (queue == nullptr) return nullptr;
  worker.is_large = queue->front().size == TaskSize::kLarge;
  num_large_running_ += worker.is_large;
  Task task = std::move(queue->front().task);
  queue->pop_front();
  return task;
}

LanePool::Workers LanePool::HandOut() {
  Workers given;
  for (const auto& worker : workers_) {
    if (!worker->idle) continue;
    worker->task = TakeQueued(*worker);
    if (!worker->task) continue;
    worker->idle = false;
    worker->has_task.store(true, std::memory_order_relaxed);
    given.push_back(worker.get());
  }
  return given;
}

LanePool::Task LanePool::NextTask(Worker& worker) {
  const auto asked = Clock::now();
  Task task;
  Workers given;
  {
    MutexLock lock(mutex_);
    num_large_running_ -= std::exchange(worker.is_large, false);
    task = TakeQueued(worker);
    if (!task) worker.idle = true;
    given = HandOut();  // More large tasks may run once small requests have stopped.
  }
  for (Worker* other : given) other->wake.NotifyOne();
  if (task) return task;
  const bool has_core = !worker.polls || Poll(worker.has_task, poll_time_);
  MutexLock lock(mutex_);
  while (!worker.task && !stopping_) worker.wake.Wait(mutex_);
  worker.idle = false;
  worker.has_task.store(false, std::memory_order_relaxed);
  worker.polls = IsFirst(worker) && has_core && Clock::now() - asked < poll_time_;
  return std::exchange(worker.task, nullptr);
}

void LanePool::RunLane(Worker& worker) {
  while (Task task = NextTask(worker)) {
    task(worker.lane);
    LookAtMemory();
  }
}

void LanePool::LookAtMemory() {
  const auto now = Clock::now();
  auto last = looked_at_memory_.load(std::memory_order_relaxed);
  if (now - last < std::chrono::seconds(1)) return;
  if (!looked_at_memory_.compare_exchange_strong(last, now, std::memory_order_relaxed)) return;
  free_memory_bytes_.store(device_.FreeMemoryBytes(), std::memory_order_relaxed);
}

}  // namespace prefixd
