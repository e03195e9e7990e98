// The attempts of one call: which server each asks, and when there is no point in another. Private to the library.
//
//   Attempts attempts(connection, call, deadline);
//   return Retry(attempts, [&](const Server& server) -> Outcome { return {Call(server), true}; });
//
// A server that can't be reached, or answers UNAVAILABLE, has the call go to the next at once. A pause follows only
// when all have been asked.
#ifndef PREFIXD_CLIENT_ATTEMPTS_H_
#define PREFIXD_CLIENT_ATTEMPTS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "client/cancellation.h"
#include "client/connection.h"
#include "client/options.h"

namespace prefixd::client {

// Begins when the call does.
// Threads: one at a time.
class Attempts {
 public:
  // Needs: connection.status().ok(), and the connection to outlive this.
  Attempts(const Connection& connection, const CallOptions& call, absl::Time deadline);

  // Whom to ask now.
  const Server& server() const { return *order_[next_]; }

  // The server has refused: turns to another. False where another attempt would begin too late, or the call was
  // cancelled. Pauses first if all have refused.
  bool Next();

 private:
  bool Pause();

  const Connection& connection_;
  const Cancellation* const cancellation_;
  const absl::Time deadline_;
  const absl::Time end_;  // No pause ends later.
  std::vector<const Server*> order_;
  size_t next_ = 0;
  absl::Duration next_pause_;
  absl::BitGen random_;
};

// How one attempt ended. An error of the caller's own source or sink is never a reason to try again.
struct Outcome {
  absl::Status status;
  bool may_retry = false;
};

// Runs attempts until one succeeds or there is no point in another.
template <class Attempt>
absl::Status Retry(Attempts& attempts, Attempt attempt) {
  for (;;) {
    Outcome outcome = attempt(attempts.server());
    if (absl::IsUnavailable(outcome.status) && outcome.may_retry && attempts.Next()) continue;
    return std::move(outcome.status);
  }
}

// Waits until the server is connected, or can't be.
bool Connect(const Server& server, const CallOptions& call, absl::Time deadline);

// The server of a stream that is not tried again: the first that can be connected to, else the last of the attempts.
// Waits for it, so that a server that is just starting is found.
const Server& ConnectedServer(const Connection& connection, const CallOptions& call, absl::Time deadline);

// For a call that must not run twice, as one that makes an array or changes one in place: asks a server that is
// connected, and another only where the one says that it has not begun.
template <class Attempt>
absl::Status RunOnce(const Connection& connection, const CallOptions& call, absl::Time deadline, Attempt attempt) {
  Attempts attempts(connection, call, deadline);
  return Retry(attempts, [&](const Server& /*server*/) -> Outcome {
    while (!Connect(attempts.server(), call, deadline) && attempts.Next()) continue;
    absl::Status status = attempt(attempts.server());
    const bool has_refused = ErrorReason(status) == "DRAINING";
    return {std::move(status), has_refused};
  });
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ATTEMPTS_H_
