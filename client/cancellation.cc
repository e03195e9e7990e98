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
  constexpr absl::Duration kLongest = absl::Hours(24);  // wait_for adds to the clock's time, which overflows.
  std::unique_lock lock(mutex_);
  const auto cancelled = [this] { return cancelled_; };
  for (; duration > kLongest; duration -= kLongest) {
    if (changed_.wait_for(lock, absl::ToChronoNanoseconds(kLongest), cancelled)) return false;
  }
  return !changed_.wait_for(lock, absl::ToChronoNanoseconds(duration), cancelled);
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
