// Whether a request should still be worked on: not once its caller has gone or was given up, or its deadline has
// passed. Threads: any. Asked before every launch.
#ifndef PREFIXD_SERVER_CALL_STOP_SIGNAL_H_
#define PREFIXD_SERVER_CALL_STOP_SIGNAL_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status.h"

namespace prefixd {

class StopSignal {
 public:
  explicit StopSignal(absl::Time deadline) : deadline_(deadline) {}

  // The first cause is kept.
  void Cancel(absl::Status cause = Cancelled()) {
    MutexLock lock(mutex_);
    if (cancelled_.load(std::memory_order_relaxed)) return;
    cause_ = std::move(cause);
    cancelled_.store(true, std::memory_order_relaxed);
  }

  // OK while the request is wanted; else DEADLINE_EXCEEDED (DEADLINE) or the cause, CANCELLED if it was not said.
  absl::Status Check() const {
    // A passed deadline cancels the call too: name the cause, not the symptom.
    if (deadline_ != absl::InfiniteFuture() && absl::Now() >= deadline_) {
      return Error(absl::StatusCode::kDeadlineExceeded, "DEADLINE", "", "the deadline passed; work has stopped");
    }
    if (!cancelled_.load(std::memory_order_relaxed)) return absl::OkStatus();
    MutexLock lock(mutex_);
    return cause_;
  }

 private:
  static absl::Status Cancelled() {
    return Error(absl::StatusCode::kCancelled, "CANCELLED", "",
                 "the caller went away, or sent a message above --max-message-bytes; work has stopped");
  }

  const absl::Time deadline_;
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_STOP_SIGNAL_H_
