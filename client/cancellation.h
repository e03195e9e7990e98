// Cancellation: ends calls from another thread.
//
//   Cancellation cancellation;
//   std::thread stopper([&] { cancellation.Cancel(); });
//   auto sum = client.Reduce<float>(values, {}, {.cancellation = &cancellation});  // CANCELLED
#ifndef PREFIXD_CLIENT_CANCELLATION_H_
#define PREFIXD_CLIENT_CANCELLATION_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include "absl/time/time.h"

namespace prefixd::client {

// A switch that turns once. Calls that were given it end with CANCELLED, those that come later too.
// Owns:    nothing; must outlive the calls it was given to.
// Threads: every method from any thread, but not from a signal handler.
class Cancellation {
 public:
  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void Cancel();
  bool cancelled() const;

  // Blocks for `duration`. Returns false, at once, where it was or becomes cancelled.
  bool SleepUnlessCancelled(absl::Duration duration) const;

  // Runs `on_cancel` on Cancel, or now if it was cancelled before. Once Remove has returned it neither runs nor will.
  // `on_cancel` must not call back into this object.
  int Add(std::function<void()> on_cancel);
  void Remove(int id);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool cancelled_ = false;
  int next_id_ = 0;
  std::map<int, std::function<void()>> on_cancel_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_CANCELLATION_H_
