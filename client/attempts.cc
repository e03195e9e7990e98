#include "client/attempts.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace prefixd::client {

bool Connect(const Server& server, const CallOptions& call, absl::Time deadline) {
  grpc::Channel& channel = *server.channel();
  for (;;) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
    const absl::Time now = absl::Now();
    if (now >= deadline || (call.cancellation != nullptr && call.cancellation->cancelled())) return false;
    // In short steps, so that a cancelled call does not wait.
    channel.WaitForStateChange(state, absl::ToChronoTime(std::min(deadline, now + absl::Milliseconds(50))));
  }
}

Attempts::Attempts(const Connection& connection, const CallOptions& call, absl::Time deadline)
    : connection_(connection),
      cancellation_(call.cancellation),
      deadline_(deadline),
      end_(std::min(absl::Now() + connection.options().retry_window, deadline)),
      order_(connection.Order()),
      next_pause_(connection.options().initial_backoff) {}

bool Attempts::Next() {
  server().Shun(connection_.options().max_backoff);
  if (next_ + 1 == order_.size()) {
    if (!Pause()) return false;
    order_ = connection_.Order();
    next_ = 0;
    return true;
  }
  if (absl::Now() >= deadline_ || (cancellation_ != nullptr && cancellation_->cancelled())) return false;
  ++next_;
  return true;
}

bool Attempts::Pause() {
  const absl::Duration pause = next_pause_ * absl::Uniform(random_, 0.5, 1.0);
  next_pause_ = std::min(next_pause_ * 2, connection_.options().max_backoff);
  if (absl::Now() + pause >= end_) return false;
  if (cancellation_ != nullptr) return cancellation_->SleepUnlessCancelled(pause);
  absl::SleepFor(pause);  // Nobody can cancel the call.
  return true;
}

const Server& ConnectedServer(const Connection& connection, const CallOptions& call, absl::Time deadline) {
  Attempts attempts(connection, call, deadline);
  while (!Connect(attempts.server(), call, deadline) && attempts.Next()) continue;
  return attempts.server();
}

}  // namespace prefixd::client
