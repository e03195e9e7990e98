// One load on a server: callers that send requests for a while, and what came of it.
//
//   Closed loop: each caller sends its next request when the last one has ended, so a server that is slow is asked
//   less. Open loop: requests arrive at a rate, at times that were fixed before (schedule.h), whatever the server does.
//   A request's latency counts from its arrival: one that no caller was free for has waited, and shows it.
#ifndef PREFIXD_CLIENT_LOAD_LOAD_H_
#define PREFIXD_CLIENT_LOAD_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cancellation.h"
#include "client/load/mix.h"
#include "client/load/recorder.h"

namespace prefixd::load {

// How long a load goes on, and when its figures count.
struct Plan {
  absl::Duration warm_up = absl::Seconds(1);  // Before anything is measured.
  absl::Duration measure = absl::Seconds(3);  // In three windows.
  // Goes on, a window at a time and kMaxWindows at most, until the last three agree; they are what counts.
  bool until_stable = false;
};
inline constexpr size_t kMaxWindows = 10;

struct Load {
  std::optional<uint64_t> rate_per_second;  // An open loop has one. Absent: a closed loop.
  size_t num_callers = 1;                   // Requests under way at once; of an open loop, at most.
};

struct LoadResult {
  explicit LoadResult(const Load& of, size_t num_operations) : load(of), measured(num_operations) {}

  Load load;
  // The last three windows, and the requests that were still under way, or waiting, when they ended. A load that was
  // cut short has fewer windows, and duration 0 if it ended before the first.
  Window measured;
  size_t num_windows = 0;  // As many were measured in all.
  bool stable = false;     // Whether IsStable holds.
  // Requests that were measured failed, and none succeeded. Such a load ends early: when nothing has succeeded since it
  // began, for a second at least and with no caller's first request under way, or nothing in three windows.
  bool hopeless = false;
};

// Sends one request for an operation of the mix, and waits for its end. Called by all callers, from their threads.
using Sender = std::function<Outcome(size_t caller, size_t operation)>;

// Hears what goes on, some five times a second, on the calling thread.
using OnProgress = absl::FunctionRef<void(const std::string& what)>;

// Runs one load, with a thread for each caller. Cancellation ends it, and the result has what came until then. Requests
// that are under way are waited for, and it is for the sender to end them: those that then fail with CANCELLED count as
// interrupted.
// In a closed loop a caller whose request failed waits for as long as the server asks (RetryInfo), or 100 ms: refusals
// are quick, and a loop of them would be another load than the one asked for.
// Errors: RESOURCE_EXHAUSTED: there can't be so many threads.
absl::StatusOr<LoadResult> RunLoad(const Plan& plan, const Load& load, const Mix& mix, const Sender& send,
                                   client::Cancellation& cancellation, OnProgress on_progress);

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_LOAD_H_
