#include "client/load/load.h"

#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "client/client.h"
#include "client/load/schedule.h"

namespace prefixd::load {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);
constexpr absl::Duration kPauseAfterError = absl::Milliseconds(100);
constexpr absl::Duration kPatience = absl::Seconds(1);  // Where nothing succeeds.

// The callers of one load, from the constructor to Stop.
class Callers {
 public:
  Callers(const Load& load, const Mix& mix, const Sender& send, const client::Cancellation& cancellation,
          Recorder* recorder)
      : mix_(mix), send_(send), cancellation_(cancellation), recorder_(*recorder) {
    if (load.rate_per_second) schedule_.emplace(*load.rate_per_second);
  }
  ~Callers() { Stop(); }
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  // Errors: RESOURCE_EXHAUSTED: there can't be so many threads; those that could start are stopped.
  absl::Status Start(size_t num_callers) {
    try {
      for (size_t i = 0; i < num_callers; ++i) threads_.emplace_back([this, i] { Run(i); });
    } catch (const std::system_error& error) {
      const size_t num_started = threads_.size();
      Stop();
      return absl::ResourceExhaustedError(StrCat("only ", num_started, " of ", num_callers, " callers could start (",
                                                 error.what(), "): ask for fewer, or raise the limit of processes"));
    }
    return absl::OkStatus();
  }

  // Whether for a while requests have failed and none has succeeded, nor may yet: no caller waits for its first answer.
  bool IsHopeless() const {
    return has_failed_ && !has_succeeded_ && num_first_under_way_ == 0 &&
           absl::FromChrono(Clock::now() - began_) >= kPatience;
  }

  // Sends nothing more, and waits for what is under way.
  void Stop() {
    stop_.Cancel();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // What had arrived when the load ended, and was not sent. Needs: Stop.
  void RecordUnsent(Clock::time_point end) {
    if (!schedule_) return;
    const uint64_t num_arrived = schedule_->NumArrived(end - began_);
    for (uint64_t number = next_; number < num_arrived; ++number) {
      recorder_.RecordUnsent(mix_.Pick(number), end - began_ - schedule_->Arrival(number));
    }
  }

 private:
  void Run(size_t caller) {
    // Linux wakes sleepers 50 us late, to save power. In an open loop that would be latency of our own making.
    prctl(PR_SET_TIMERSLACK, 1);
    bool is_first = true;
    while (!stop_.cancelled()) {
      const uint64_t number = next_++;
      Clock::time_point arrival = Clock::now();
      if (schedule_) {
        arrival = began_ + schedule_->Arrival(number);
        // One that arrives only after the end is not wanted any more; one that has arrived is sent in any case.
        if (!SleepUntil(arrival) && Clock::now() < arrival) return;
      }
      const size_t operation = mix_.Pick(number);
      if (is_first) ++num_first_under_way_;
      const Outcome outcome = send_(caller, operation);
      const std::chrono::nanoseconds latency = Clock::now() - arrival;
      if (absl::IsCancelled(outcome.status) && cancellation_.cancelled()) {
        recorder_.RecordInterrupted(operation, latency);
        return;
      }
      recorder_.Record(operation, latency, outcome);
      (outcome.status.ok() ? has_succeeded_ : has_failed_) = true;
      if (std::exchange(is_first, false)) --num_first_under_way_;
      if (outcome.status.ok() || schedule_) continue;
      stop_.SleepUnlessCancelled(client::RetryDelay(outcome.status).value_or(kPauseAfterError));
    }
  }

  // False, perhaps early, once stopped.
  bool SleepUntil(Clock::time_point time) const {
    const absl::Duration left = absl::FromChrono(time - Clock::now());
    return left <= absl::ZeroDuration() ? !stop_.cancelled() : stop_.SleepUnlessCancelled(left);
  }

  const Mix& mix_;
  const Sender& send_;
  const client::Cancellation& cancellation_;
  Recorder& recorder_;
  std::optional<Schedule> schedule_;
  const Clock::time_point began_ = Clock::now();
  std::atomic<uint64_t> next_ = 0;
  std::atomic<size_t> num_first_under_way_ = 0;
  std::atomic<bool> has_succeeded_ = false;
  std::atomic<bool> has_failed_ = false;
  client::Cancellation stop_;
  std::vector<std::thread> threads_;
};

std::string SecondsText(absl::Duration duration) { return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration)); }

// Why a stretch of time was over.
enum class End { kTime, kCancelled, kHopeless };

End Pass(absl::Duration duration, const std::string& what, const Callers& callers, const Recorder& recorder,
         const client::Cancellation& cancellation, OnProgress on_progress) {
  const Clock::time_point began = Clock::now();
  for (;;) {
    const absl::Duration passed = absl::FromChrono(Clock::now() - began);
    if (callers.IsHopeless()) return End::kHopeless;
    if (passed >= duration) return End::kTime;
    const Recorder::Counts counts = recorder.counts();
    on_progress(StrCat(what, ", ", SecondsText(passed), " of ", SecondsText(duration), ": ", counts.num_ok, " requests",
                       counts.num_failed == 0 ? "" : StrCat(", ", counts.num_failed, " failed")));
    if (!cancellation.SleepUnlessCancelled(std::min(duration - passed, kProgressInterval))) return End::kCancelled;
  }
}

// In the last windows, of which a result is made.
bool NothingSucceeds(absl::Span<const Window> windows) {
  const auto last = windows.last(kStableWindows);
  return std::all_of(last.begin(), last.end(), [](const Window& window) {
    const Tally all = window.All();
    return all.num_failed > 0 && all.num_ok == 0;
  });
}

}  // namespace

absl::StatusOr<LoadResult> RunLoad(const Plan& plan, const Load& load, const Mix& mix, const Sender& send,
                                   client::Cancellation& cancellation, OnProgress on_progress) {
  const size_t num_operations = mix.operations().size();
  LoadResult result(load, num_operations);
  Recorder recorder(num_operations);
  Callers callers(load, mix, send, cancellation, &recorder);
  PREFIXD_RETURN_IF_ERROR(callers.Start(load.num_callers));
  End end = End::kTime;
  std::vector<Window> windows;
  if (plan.warm_up > absl::ZeroDuration()) {
    end = Pass(plan.warm_up, "warm-up", callers, recorder, cancellation, on_progress);
    Window warm_up = recorder.Cut();
    if (end == End::kHopeless) windows.push_back(std::move(warm_up));  // There is nothing better to tell.
  }
  while (end == End::kTime) {
    end = Pass(plan.measure / kStableWindows, StrCat("window ", windows.size() + 1), callers, recorder, cancellation,
               on_progress);
    windows.push_back(recorder.Cut());
    result.stable = end == End::kTime && IsStable(windows, load.rate_per_second);
    if (windows.size() == kMaxWindows) break;
    if (windows.size() >= kStableWindows && (!plan.until_stable || result.stable || NothingSucceeds(windows))) break;
  }
  const Clock::time_point stopped = Clock::now();
  callers.Stop();
  callers.RecordUnsent(stopped);
  result.num_windows = windows.size();
  if (windows.empty()) return result;
  const size_t num_used = std::min(windows.size(), kStableWindows);
  for (size_t i = windows.size() - num_used; i < windows.size(); ++i) result.measured.Merge(windows[i]);
  // What ended later counts for latencies, not for the rate.
  Window rest = recorder.Cut();
  for (Tally& tally : rest.tallies) {
    tally.num_late = std::exchange(tally.num_ok, 0);
    tally.num_bytes = 0;
  }
  rest.duration = {};
  result.measured.Merge(rest);
  const Tally all = result.measured.All();
  result.hopeless = all.num_failed > 0 && all.num_ok + all.num_late == 0;
  return result;
}

}  // namespace prefixd::load
