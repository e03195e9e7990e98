// The pool of device lanes. Each lane has one thread of its own, its pinned staging and its device buffers, all made at
// start-up. A task borrows one lane until it returns; a stream submits one task a piece, so that streams take turns
// and one that sends nothing holds nothing.
//
// Small tasks don't wait for large ones: where there are several lanes, the first runs small tasks only. The others run
// both in the order submitted, so that many small tasks can't hold up a large one for ever. While small
// requests come, large tasks run on a third of the lanes at a time: what all lanes do takes every core that such need
// on their way in and out. Those that it holds back go on when a large one ends.
//
// Where tasks follow each other closely, none waits for a thread to wake up: the first lane's polls for a moment before
// it sleeps, if its last task came within that moment and nobody else wants the core. Without tasks all threads sleep.
//
// Threads: any; tasks run on lane threads, up to num_lanes at once.
// Bounds:  the queue is as long as the callers' tasks: a session has at most one, so Admission bounds it.
#ifndef PREFIXD_SERVER_LANES_LANE_POOL_H_
#define PREFIXD_SERVER_LANES_LANE_POOL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "kernels/device.h"
#include "server/lanes/borrowed_lane.h"
#include "server/lanes/staging_pool.h"

namespace prefixd {

// What a task is likely to take: a launch or so; a piece of a large array; or long, as nothing else does. Of the last
// there is one at a time, and it is not held back for small requests.
enum class TaskSize : uint8_t { kSmall, kLarge, kMeasurement };

class LanePool {
 public:
  using Task = absl::AnyInvocable<void(BorrowedLane&)>;

  // Makes the lanes, with staging_bytes for replies, and starts their threads. The device must outlive the pool.
  // poll_time: how long the first lane's thread polls; 0: never. small_gap: within which the next small request has to
  // follow for them to count as coming.
  // Errors: those of the device (no memory).
  static absl::StatusOr<std::unique_ptr<LanePool>> Create(
      Device& device, int num_lanes, uint64_t staging_bytes,
      std::chrono::microseconds poll_time = std::chrono::microseconds(0),
      std::chrono::milliseconds small_gap = std::chrono::milliseconds(100));

  // Runs the tasks that are queued, then stops the threads. Needs: no Submit at the same time or later.
  ~LanePool();

  void Submit(TaskSize size, Task task);

  // A small request has come. Two within small_gap, and large tasks make room for them, until as long after the last.
  void NoteSmallRequest();

  int num_lanes() const { return static_cast<int>(workers_.size()); }
  // Pinned: of the lanes, always in use, and for replies.
  size_t staging_bytes() const { return lane_bytes_ + replies_->size_bytes(); }
  size_t used_staging_bytes() const { return lane_bytes_ + replies_->used_bytes(); }
  // What the device had free when a lane last looked: after a task, at most once a second.
  uint64_t free_memory_bytes() const { return free_memory_bytes_.load(std::memory_order_relaxed); }

 private:
  struct QueuedTask {
    uint64_t number = 0;  // In the order submitted.
    TaskSize size = TaskSize::kSmall;
    Task task;
  };

  // A lane with its thread.
  struct Worker {
    BorrowedLane lane;
    std::thread thread;
    CondVar wake;
    bool polls = false;                 // Its last wait was a short one. Its thread's own.
    std::atomic<bool> has_task{false};  // Whether `task` is set, for a look without the mutex.
    // The pool's mutex guards these.
    bool idle = false;      // Its thread waits, and nothing that is queued may run now on its lane.
    bool is_large = false;  // Its task is a large one.
    Task task;              // What the thread is to run next.
  };
  using Workers = absl::InlinedVector<Worker*, 8>;

  LanePool(const Device& device, std::chrono::microseconds poll_time, std::chrono::milliseconds small_gap)
      : device_(device), poll_time_(poll_time), small_gap_(small_gap) {}
  void RunLane(Worker& worker);
  // What the worker is to run next, for which it waits; null: to end.
  Task NextTask(Worker& worker);
  bool IsFirst(const Worker& worker) const { return &worker == workers_.front().get(); }
  bool IsReserved(const Worker& worker) const { return workers_.size() > 1 && IsFirst(worker); }
  // Whether a task of that size, not a small one, may run now.
  bool MayRun(TaskSize size) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The queue whose first task the worker is to run next; null: none.
  std::deque<QueuedTask>* NextQueue(const Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Task TakeQueued(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives idle workers what is queued for them. They are still to be woken.
  Workers HandOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  Mutex mutex_;
  uint64_t num_submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<QueuedTask> small_ ABSL_GUARDED_BY(mutex_);
  std::deque<QueuedTask> others_ ABSL_GUARDED_BY(mutex_);
  int num_large_running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANES_LANE_POOL_H_
