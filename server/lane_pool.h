// The pool of device lanes. Each lane has one thread of its own, its pinned staging and its device buffers, all made at
// start-up. A task borrows one lane until it returns; a stream submits one task a chunk, so that streams take turns
// and one that sends nothing holds nothing.
//
// Threads: Submit from any thread; tasks run on lane threads, up to num_lanes at once, started in the order submitted.
// Bounds:  the queue is as long as the callers' tasks: a session has at most one, so Admission bounds it.
#ifndef PREFIXD_SERVER_LANE_POOL_H_
#define PREFIXD_SERVER_LANE_POOL_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/mutex.h"

namespace prefixd {

// What one piece of work passes through: a pinned block on the host and its twin on the device.
struct StagingBlock {
  Buffer host;
  Buffer device;
};

// A lane and what a task needs beside it. Each block has kMaxReplyPayloadBytes.
struct BorrowedLane {
  std::unique_ptr<Lane> lane;
  StagingBlock in;
  StagingBlock mask;
  StagingBlock values;
  StagingBlock indices;
  StagingBlock scalar;  // 64 bytes: counts and reduce states.
};

class LanePool {
 public:
  using Task = absl::AnyInvocable<void(BorrowedLane&)>;

  // Makes the lanes and starts their threads. The device must outlive the pool.
  // Errors: those of the device (no memory).
  static absl::StatusOr<std::unique_ptr<LanePool>> Create(Device& device, int num_lanes);

  // Runs the tasks that are queued, then stops the threads. Needs: no Submit at the same time or later.
  ~LanePool();

  void Submit(Task task);

  int num_lanes() const { return static_cast<int>(lanes_.size()); }
  size_t staging_bytes() const { return staging_bytes_; }
  // What the device had free when a lane last looked: after a task, at most once a second.
  uint64_t free_memory_bytes() const { return free_memory_bytes_.load(std::memory_order_relaxed); }

 private:
  explicit LanePool(const Device& device) : device_(device) {}
  void RunLane(BorrowedLane& lane);
  void LookAtMemory();

  const Device& device_;
  std::vector<BorrowedLane> lanes_;
  size_t staging_bytes_ = 0;
  std::atomic<uint64_t> free_memory_bytes_{0};
  std::atomic<std::chrono::steady_clock::time_point> looked_at_memory_{};
  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LANE_POOL_H_
