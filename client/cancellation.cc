#include "client/cancellation.h"

#include <utility>

namespace prefixd::client {

void Cancellation::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
  for (auto& [id, on_cancel] : on_cancel_) on_cancel();
}

bool Cancellation::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

bool Cancellation::SleepUnlessCancelled(absl::Duration duration) const {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, absl::ToChronoNanoseconds(duration), [this] { return cancelled_; });
}

int Cancellation::Add(std::function<void()> on_cancel) {
  std::lock_guard lock(mutex_);
  if (cancelled_) on_cancel();
  on_cancel_.emplace(next_id_, std::move(on_cancel));
  return next_id_++;
}

void Cancellation::Remove(int id) {
  std::lock_guard lock(mutex_);
  on_cancel_.erase(id);
}

}  // namespace prefixd::client
