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
  std::optional<uint64_t> rate_per_second;  // Of an open loop. Absent: a closed one.
  size_t num_callers = 1;                   // Requests under way at once; of an open loop, at most.
};

struct LoadResult {
  explicit LoadResult(const Load& of, size_t num_operations) : load(of), measured(num_operations) {}

  Load load;
  // The last three windows, and what was still under way, or waiting, when they ended. Fewer where it was cut short; of
  // duration 0 if that was before the first.
  Window measured;
  size_t num_windows = 0;  // Measured in all.
  bool stable = false;     // As IsStable.
  // Of what was measured, requests failed and none succeeded. Ended early where none had since the load began, for a
  // second at least and with no caller's first request under way, or none in three windows.
  bool hopeless = false;
};

// Sends one request for an operation of the mix, and waits for its end. Called by all callers, from their threads.
using Sender = std::function<Outcome(size_t caller, size_t operation)>;

// What goes on, some five times a second, on the calling thread.
using OnProgress = absl::FunctionRef<void(const std::string& what)>;

// Runs one load: a thread a caller. Cancellation ends it with what came until then; what that does to requests under
// way, which are waited for, is the sender's business. One that fails with CANCELLED then was interrupted.
// A caller of a closed loop whose request failed waits for as long as the server asks (RetryInfo), or 100 ms: refusals
// are quick, and a loop of them would be another load than the one asked for.
// Errors: RESOURCE_EXHAUSTED: there can't be so many threads.
absl::StatusOr<LoadResult> RunLoad(const Plan& plan, const Load& load, const Mix& mix, const Sender& send,
                                   client::Cancellation& cancellation, OnProgress on_progress);

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_LOAD_H_
