// What every call needs: its deadline, the context of one attempt, the pause before the next. Private to the library.
//
// The library uses only gRPC's synchronous API: in gRPC 1.51 a process that used the callback API pauses for ten
// seconds when its last channel goes, and a command line tool must end at once.
#ifndef PREFIXD_CLIENT_RPC_H_
#define PREFIXD_CLIENT_RPC_H_

#include <grpcpp/client_context.h>

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cancellation.h"
#include "client/grpc_status.h"
#include "client/options.h"

namespace prefixd::client {

// The deadline of a call that starts now.
inline absl::Time Deadline(const CallOptions& call) { return absl::Now() + call.timeout; }

// The context of one attempt.
class AttemptContext {
 public:
  AttemptContext(const CallOptions& call, absl::Time deadline) : cancellation_(call.cancellation) {
    if (deadline != absl::InfiniteFuture()) context_.set_deadline(absl::ToChronoTime(deadline));
    if (cancellation_ != nullptr) id_ = cancellation_->Add([this] { context_.TryCancel(); });
  }
  ~AttemptContext() {
    if (cancellation_ != nullptr) cancellation_->Remove(id_);
  }
  AttemptContext(const AttemptContext&) = delete;
  AttemptContext& operator=(const AttemptContext&) = delete;

  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
  Cancellation* const cancellation_;
  int id_ = 0;
};

// The pauses between the attempts of one call; begins when the call does.
class Backoff {
 public:
  Backoff(const ClientOptions& options, const CallOptions& call, absl::Time deadline)
      : options_(options), cancellation_(call.cancellation), next_(options.initial_backoff) {
    end_ = std::min(absl::Now() + options.retry_window, deadline);
  }

  // Pauses. False, without a pause, if another attempt would begin too late; false also if the call was cancelled.
  bool Pause() {
    const absl::Duration pause = next_ * absl::Uniform(random_, 0.5, 1.0);
    next_ = std::min(next_ * 2, options_.max_backoff);
    if (absl::Now() + pause >= end_) return false;
    if (cancellation_ != nullptr) return cancellation_->SleepUnlessCancelled(pause);
    absl::SleepFor(pause);
    return true;
  }

 private:
  const ClientOptions options_;
  const Cancellation* const cancellation_;
  absl::Time end_;
  absl::Duration next_;
  absl::BitGen random_;
};

// How one attempt ended. An error of the caller's own source or sink is never a reason to try again.
struct Outcome {
  absl::Status status;
  bool may_retry = false;
};

// Runs attempts until one succeeds or there is no point in another.
template <class Attempt>
absl::Status Retry(Backoff backoff, Attempt attempt) {
  for (;;) {
    Outcome outcome = attempt();
    if (absl::IsUnavailable(outcome.status) && outcome.may_retry && backoff.Pause()) continue;
    return std::move(outcome.status);
  }
}

// How a call with one reply ended.
inline absl::Status UnaryStatus(const absl::Status& status) {
  return ExplainDeadline(status, "the server had not answered when the timeout passed");
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_RPC_H_
