// The pool of device lanes. Each lane has a thread, pinned staging and device buffers, all made at start-up. A task
// borrows one lane until it returns. A stream submits one task for each piece, so streams take turns, and a stream that
// sends nothing holds no lane.
//
// Tasks that have to wait are shared fairly among callers (fair_queue.h), by the time that they are estimated to take:
// small ones among those who have small ones, large ones likewise, and a lane that may run both takes the one whose
// turn it is on the common clock. So many small tasks can't hold up a large one for ever.
//
// Small tasks don't wait for large ones: where there are several lanes, the first lane runs small tasks only. Large
// tasks on all lanes would keep every core busy, and small requests need cores to be received and answered. So while
// small requests come, large tasks run on a third of the lanes. A large task that has to wait starts when another large
// one ends. Yardsticks are below all: one runs at a time, and only where no other task waits and a large one might run.
//
// Waking a thread takes longer than a small task. So the threads to which a lone caller's tasks go, small ones the
// first lane's and large ones the second's, poll for poll_time before they sleep, if their last task came within that
// time and no other thread wants the core. Without tasks all threads sleep.
//
// Threads: any; tasks run on lane threads, up to num_lanes at once.
// Bounds:  a session has at most one task in the queue, so Admission bounds its length.
#ifndef PREFIXD_SERVER_LANES_LANE_POOL_H_
#define PREFIXD_SERVER_LANES_LANE_POOL_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kernels/device.h"
#include "server/lanes/borrowed_lane.h"
#include "server/lanes/fair_queue.h"
#include "server/lanes/staging_pool.h"

namespace prefixd {

// What a task is: a launch or two; a piece of a large array; the samples of a benchmark, of which one runs at a time,
// so that small requests do not hold it back; a piece, or the samples, of an algorithm that is there to be compared
// with.
enum class TaskSize : uint8_t { kSmall, kLarge, kMeasurement, kYardstick };

struct TaskInfo {
  TaskSize size = TaskSize::kSmall;
  int64_t estimated_ns = 1;  // How long a lane is likely to have it. What counts is the ratio to other tasks.
  FairCaller caller = {};    // Read by Submit only.
};

class LanePool {
 public:
  using Task = absl::AnyInvocable<void(BorrowedLane&)>;

  // Makes the lanes, with staging_bytes for replies, and starts their threads. The device must outlive the pool.
  // poll_time: how long the threads of the first two lanes poll; 0: never.
  // small_gap: small requests "come" while each follows the one before within this time.
  // Errors: those of the device (no memory).
  static absl::StatusOr<std::unique_ptr<LanePool>> Create(
      Device& device, int num_lanes, uint64_t staging_bytes,
      std::chrono::microseconds poll_time = std::chrono::microseconds(0),
      std::chrono::milliseconds small_gap = std::chrono::milliseconds(100));

  // Runs the tasks that are queued, then stops the threads. Needs: no Submit at the same time or later.
  ~LanePool();

  void Submit(const TaskInfo& info, Task task);

  // A small request has come. After two within small_gap large tasks make room, until small_gap after the last one.
  void NoteSmallRequest();

  struct Load {
    int busy = 0;          // Lanes that run a task.
    uint64_t waiting = 0;  // Tasks that no lane runs yet.
  };
  Load load() const;
  int num_lanes() const { return static_cast<int>(workers_.size()); }
  // Pinned memory: the lanes' own, which is always in use, and the replies'.
  size_t staging_bytes() const { return lane_bytes_ + replies_->size_bytes(); }
  size_t used_staging_bytes() const { return lane_bytes_ + replies_->used_bytes(); }
  // The device's free memory when a lane last looked: after a task, at most once a second.
  uint64_t free_memory_bytes() const { return free_memory_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kNumSizes = 4;

  // A lane with its thread.
  struct Worker {
    BorrowedLane lane;
    std::thread thread;
    CondVar wake;
    bool polls = false;                 // Its last wait was a short one. Its thread's own.
    std::atomic<bool> has_task{false};  // Whether `task` is set, for a look without the mutex.
    // The pool's mutex guards these.
    bool idle = false;             // Its thread waits, and no queued task may run on its lane now.
    std::optional<TaskSize> size;  // Its task's.
    Task task;                     // The thread runs it next.
  };
  using Workers = absl::InlinedVector<Worker*, 8>;

  LanePool(const Device& device, std::chrono::microseconds poll_time, std::chrono::milliseconds small_gap)
      : device_(device),
        poll_time_(poll_time),
        small_gap_(small_gap),
        queues_{FairQueue<Task>(&clock_), FairQueue<Task>(&clock_), FairQueue<Task>(&clock_),
                FairQueue<Task>(&clock_)} {}
  void RunLane(Worker& worker);
  // Waits for the worker's next task; null: the thread ends.
  Task NextTask(Worker& worker);
  bool IsFirst(const Worker& worker) const { return &worker == workers_.front().get(); }
  bool IsReserved(const Worker& worker) const { return workers_.size() > 1 && IsFirst(worker); }
  // Tasks go to the first lane that is idle and may run them.
  bool IsALoneCallers(const Worker& worker) const { return IsFirst(worker) || &worker == workers_[1].get(); }
  FairQueue<Task>& QueueOf(TaskSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queues_[static_cast<size_t>(size)];
  }
  bool IsWaiting(TaskSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !QueueOf(size).empty(); }
  bool HasRoomForLarge() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the worker may run a task of that size now.
  bool MayRun(const Worker& worker, TaskSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The size of the queued task that the worker is to run next.
  std::optional<TaskSize> NextSize(const Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: there is none.
  Task TakeQueued(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An idle worker for a task that needs no queue; null: it has to wait.
  Worker* IdleWorkerFor(TaskSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(Worker& worker, TaskSize size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Give(Worker& worker, Task task, Workers* given) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives queued tasks to idle workers. The caller wakes the workers that are added to *given.
  void HandOut(Workers* given) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtMemory();

  const Device& device_;
  const std::chrono::microseconds poll_time_;
  const std::chrono::milliseconds small_gap_;
  std::shared_ptr<StagingPool> replies_;
  std::vector<std::unique_ptr<Worker>> workers_;
  size_t lane_bytes_ = 0;
  std::atomic<uint64_t> free_memory_bytes_{0};
  std::atomic<std::chrono::steady_clock::time_point> looked_at_memory_{};
  std::atomic<std::chrono::steady_clock::time_point> last_small_request_{};
  std::atomic<std::chrono::steady_clock::time_point> make_room_until_{};  // For small requests.
  mutable Mutex mutex_;
  FairClock clock_ ABSL_GUARDED_BY(mutex_);
  std::array<FairQueue<Task>, kNumSizes> queues_ ABSL_GUARDED_BY(mutex_);  // By TaskSize.
  std::array<int, kNumSizes> num_running_ ABSL_GUARDED_BY(mutex_) = {};
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_LANE_POOL_H_
