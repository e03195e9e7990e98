// What requests came to: latencies, rates, errors and the server's own times, by window of time.
#ifndef PREFIXD_CLIENT_LOAD_RECORDER_H_
#define PREFIXD_CLIENT_LOAD_RECORDER_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/client.h"
#include "client/load/histogram.h"

namespace prefixd::load {

using Clock = std::chrono::steady_clock;

// The stages of client::Timing.
enum class Stage : uint8_t { kServer, kQueue, kHostCopy, kToDevice, kKernel, kFromDevice };
inline constexpr size_t kNumStages = 6;

// How one request ended.
struct Outcome {
  absl::Status status;
  client::Timing timing = {};  // Filled where it succeeded and the server has measured.
  uint64_t num_bytes = 0;      // Bytes of arrays, sent and received.
};

// The mean of a stage, over the requests for which the server measured it.
struct StageMean {
  int64_t sum_ns = 0;
  uint64_t count = 0;
};

// What the requests of one operation came to.
//
// `latency` has a value for each request that succeeded. It also has one for each that never got its answer, because it
// ran into its deadline, was interrupted, or was still waiting to be sent when the load ended: the time it had waited
// so far. That is too little, but to leave such requests out would hide a stall just where it was longest. A request
// that failed otherwise has no latency, for it may have failed at once.
struct Tally {
  Histogram latency;
  std::array<StageMean, kNumStages> stages;
  uint64_t num_ok = 0;    // Succeeded in time: what a rate is made of.
  uint64_t num_late = 0;  // Succeeded, but after the time was over.
  uint64_t num_failed = 0;
  uint64_t num_unsent = 0;       // Were still waiting when the load ended.
  uint64_t num_interrupted = 0;  // Were under way when the user ended the load.
  uint64_t num_bytes = 0;        // Sent and received by the num_ok.

  void Merge(const Tally& other);
};

struct ErrorCount {
  uint64_t count = 0;
  absl::Status first;
};

// What came in one stretch of time.
struct Window {
  explicit Window(size_t num_operations) : tallies(num_operations) {}

  std::vector<Tally> tallies;                // By operation.
  std::map<std::string, ErrorCount> errors;  // "RESOURCE_EXHAUSTED (REQUEST_BUDGET)"
  std::chrono::nanoseconds duration = {};

  Tally All() const;
  void Merge(const Window& other);
};

// Whether a load has settled: in the last three windows the rates lie within 10 % of each other, and so do the medians
// of the latencies. In an open loop as many requests must also have ended as arrived, within 10 %: where the server
// can't keep up, latencies grow for ever, but late in a long load by less than 10 % in a window.
// Example: with rates of 100, 109, 104 it has; with 100, 111, 104 it has not.
inline constexpr size_t kStableWindows = 3;
bool IsStable(absl::Span<const Window> windows, std::optional<uint64_t> arrivals_per_second);

// Threads: any.
class Recorder {
 public:
  explicit Recorder(size_t num_operations);

  // A request for this operation has ended now.
  void Record(size_t operation, std::chrono::nanoseconds latency, const Outcome& outcome);
  // A request was not sent, or was interrupted, after so long a wait.
  void RecordUnsent(size_t operation, std::chrono::nanoseconds wait);
  void RecordInterrupted(size_t operation, std::chrono::nanoseconds wait);

  // Ends a window, and begins the next.
  Window Cut();

  // What the window has so far.
  struct Counts {
    uint64_t num_ok = 0;
    uint64_t num_failed = 0;
  };
  Counts counts() const;

 private:
  mutable std::mutex mutex_;
  Window window_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace prefixd::load

#endif  // PREFIXD_CLIENT_LOAD_RECORDER_H_
