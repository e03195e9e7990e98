#include "client/load/recorder.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace prefixd::load {
namespace {

constexpr double kStableSpread = 1.1;

bool IsWithinSpread(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least > 0 && *most <= kStableSpread * *least;
}

// By what a caller has to do about it.
std::string ErrorName(const absl::Status& status) {
  const std::string code = absl::StatusCodeToString(status.code());
  const std::string reason = ErrorReason(status);
  return reason.empty() ? code : StrCat(code, " (", reason, ")");
}

}  // namespace

void Tally::Merge(const Tally& other) {
  latency.Merge(other.latency);
  for (size_t i = 0; i < kNumStages; ++i) {
    stages[i].sum_ns += other.stages[i].sum_ns;
    stages[i].count += other.stages[i].count;
  }
  num_ok += other.num_ok;
  num_late += other.num_late;
  num_failed += other.num_failed;
  num_unsent += other.num_unsent;
  num_interrupted += other.num_interrupted;
  num_bytes += other.num_bytes;
}

Tally Window::All() const {
  Tally all;
  for (const Tally& tally : tallies) all.Merge(tally);
  return all;
}

void Window::Merge(const Window& other) {
  for (size_t i = 0; i < tallies.size(); ++i) tallies[i].Merge(other.tallies[i]);
  for (const auto& [name, error] : other.errors) {
    ErrorCount& mine = errors[name];
    if (mine.count == 0) mine.first = error.first;
    mine.count += error.count;
  }
  duration += other.duration;
}

bool IsStable(absl::Span<const Window> windows, std::optional<uint64_t> arrivals_per_second) {
  if (windows.size() < kStableWindows) return false;
  std::vector<double> rates;
  std::vector<double> medians;
  for (const Window& window : windows.last(kStableWindows)) {
    const Tally all = window.All();
    const double seconds = std::chrono::duration<double>(window.duration).count();
    const double num_ended = static_cast<double>(all.num_ok + all.num_failed);
    if (arrivals_per_second && kStableSpread * num_ended < static_cast<double>(*arrivals_per_second) * seconds) {
      return false;
    }
    rates.push_back(static_cast<double>(all.num_ok) / seconds);
    medians.push_back(static_cast<double>(all.latency.Percentile(0.5)));
  }
  return IsWithinSpread(rates) && IsWithinSpread(medians);
}

Recorder::Recorder(size_t num_operations) : window_(num_operations) {}

void Recorder::Record(size_t operation, std::chrono::nanoseconds latency, const Outcome& outcome) {
  const client::Timing& timing = outcome.timing;
  const std::array<std::optional<int64_t>, kNumStages> stages = {timing.server_total_ns, timing.queue_ns,
                                                                 timing.host_copy_ns,    timing.host_to_device_ns,
                                                                 timing.kernel_ns,       timing.device_to_host_ns};
  std::lock_guard lock(mutex_);
  Tally& tally = window_.tallies[operation];
  if (!outcome.status.ok()) {
    ++tally.num_failed;
    ErrorCount& error = window_.errors[ErrorName(outcome.status)];
    if (error.count++ == 0) error.first = outcome.status;
    if (absl::IsDeadlineExceeded(outcome.status)) tally.latency.Add(latency.count());
    return;
  }
  ++tally.num_ok;
  tally.num_bytes += outcome.num_bytes;
  tally.latency.Add(latency.count());
  for (size_t i = 0; i < kNumStages; ++i) {
    if (!stages[i]) continue;
    tally.stages[i].sum_ns += *stages[i];
    ++tally.stages[i].count;
  }
}

void Recorder::RecordUnsent(size_t operation, std::chrono::nanoseconds wait) {
  std::lock_guard lock(mutex_);
  ++window_.tallies[operation].num_unsent;
  window_.tallies[operation].latency.Add(wait.count());
}

void Recorder::RecordInterrupted(size_t operation, std::chrono::nanoseconds wait) {
  std::lock_guard lock(mutex_);
  ++window_.tallies[operation].num_interrupted;
  window_.tallies[operation].latency.Add(wait.count());
}

Window Recorder::Cut() {
  Window next(window_.tallies.size());
  std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  std::swap(next, window_);
  next.duration = now - std::exchange(began_, now);
  return next;
}

Recorder::Counts Recorder::counts() const {
  Counts counts;
  std::lock_guard lock(mutex_);
  for (const Tally& tally : window_.tallies) {
    counts.num_ok += tally.num_ok;
    counts.num_failed += tally.num_failed;
  }
  return counts;
}

}  // namespace prefixd::load
