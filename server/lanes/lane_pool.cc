#include "server/lanes/lane_pool.h"

#include <algorithm>
#include <utility>

#include "base/polling.h"
#include "base/status.h"
#include "server/request.h"

namespace prefixd {
namespace {

using Clock = std::chrono::steady_clock;

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
    PREFIXD_ASSIGN_OR_RETURN(lane.mask, make(kBytes, kBytes + kMaxOpenGroupBytes));
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

void LanePool::Submit(const TaskInfo& info, Task task) {
  Workers given;
  {
    MutexLock lock(mutex_);
    if (Worker* const worker = IdleWorkerFor(info.size)) {
      Begin(*worker, info.size);
      Give(*worker, std::move(task), &given);
    } else {
      QueueOf(info.size).Push(info.caller, info.estimated_ns, std::move(task));
    }
    HandOut(&given);  // More large tasks may run once small requests have stopped.
  }
  for (Worker* worker : given) worker->wake.NotifyOne();
}

LanePool::Load LanePool::load() const {
  MutexLock lock(mutex_);
  Load load;
  for (const FairQueue<Task>& queue : queues_) load.waiting += queue.size();
  for (const auto& worker : workers_) load.busy += !worker->idle;
  return load;
}

void LanePool::NoteSmallRequest() {
  const auto now = Clock::now();
  if (now - last_small_request_.exchange(now, std::memory_order_relaxed) < small_gap_) {
    make_room_until_.store(now + small_gap_, std::memory_order_relaxed);
  }
}

bool LanePool::HasRoomForLarge() const {
  const bool make_room = Clock::now() < make_room_until_.load(std::memory_order_relaxed);
  const int most = make_room ? std::max(num_lanes() / 3, 1) : num_lanes();
  return num_running_[static_cast<size_t>(TaskSize::kLarge)] < most;
}

bool LanePool::MayRun(const Worker& worker, TaskSize size) {
  if (size == TaskSize::kSmall) return true;
  if (IsReserved(worker)) return false;
  switch (size) {
    case TaskSize::kLarge:
      return HasRoomForLarge();
    case TaskSize::kYardstick:
      return num_running_[static_cast<size_t>(TaskSize::kYardstick)] == 0 && !IsWaiting(TaskSize::kSmall) &&
             !IsWaiting(TaskSize::kLarge) && !IsWaiting(TaskSize::kMeasurement) && HasRoomForLarge();
    default:
      return true;
  }
}

std::optional<TaskSize> LanePool::NextSize(const Worker& worker) {
  std::optional<TaskSize> next;
  for (const TaskSize size : {TaskSize::kSmall, TaskSize::kLarge, TaskSize::kMeasurement}) {
    if (!IsWaiting(size) || !MayRun(worker, size)) continue;
    if (!next || QueueOf(size).NextEnd() < QueueOf(*next).NextEnd()) next = size;
  }
  if (!next && IsWaiting(TaskSize::kYardstick) && MayRun(worker, TaskSize::kYardstick)) return TaskSize::kYardstick;
  return next;
}

LanePool::Task LanePool::TakeQueued(Worker& worker) {
  const std::optional<TaskSize> size = NextSize(worker);
  if (!size) return nullptr;
  Begin(worker, *size);
  return QueueOf(*size).Pop();
}

LanePool::Worker* LanePool::IdleWorkerFor(TaskSize size) {
  if (IsWaiting(size)) return nullptr;
  for (const auto& worker : workers_) {
    if (worker->idle && MayRun(*worker, size)) return worker.get();
  }
  return nullptr;
}

void LanePool::Begin(Worker& worker, TaskSize size) {
  worker.size = size;
  ++num_running_[static_cast<size_t>(size)];
}

void LanePool::Give(Worker& worker, Task task, Workers* given) {
  worker.task = std::move(task);
  worker.idle = false;
  worker.has_task.store(true, std::memory_order_relaxed);
  given->push_back(&worker);
}

void LanePool::HandOut(Workers* given) {
  for (const auto& worker : workers_) {
    if (!worker->idle) continue;
    if (Task task = TakeQueued(*worker)) Give(*worker, std::move(task), given);
  }
}

LanePool::Task LanePool::NextTask(Worker& worker) {
  const auto asked = Clock::now();
  Task task;
  Workers given;
  {
    MutexLock lock(mutex_);
    if (worker.size) --num_running_[static_cast<size_t>(*std::exchange(worker.size, std::nullopt))];
    task = TakeQueued(worker);
    if (!task) worker.idle = true;
    HandOut(&given);
  }
  for (Worker* other : given) other->wake.NotifyOne();
  if (task) return task;
  const auto has_task = [&] { return worker.has_task.load(std::memory_order_relaxed); };
  const bool has_core = !worker.polls || Poll(poll_time_, has_task) != Polled::kOthersWantTheCore;
  MutexLock lock(mutex_);
  while (!worker.task && !stopping_) worker.wake.Wait(mutex_);
  worker.idle = false;
  worker.has_task.store(false, std::memory_order_relaxed);
  worker.polls = IsALoneCallers(worker) && has_core && Clock::now() - asked < poll_time_;
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
