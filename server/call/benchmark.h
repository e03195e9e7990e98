// One benchmark from its spec to its end, whatever carries it. It takes one measurement at a time, each on a lane that
// is borrowed for it alone, and starts the next when the last has been written. Benchmarks are expensive: one runs at a
// time, its bytes are limited, and it ends within one sample once its caller goes away, its deadline passes or the
// server drains.
//
// Threads: Start once, OnRequest or OnReadEnd once; then the transport's methods are called from lane threads and
// OnWriteDone's, one at a time.
//          OnCancel from any thread. Nothing here blocks but measurements, on lane threads.
// Ownership: the BenchmarkTransport lives until Finish was called and every On... that was running has returned; the
//          Benchmark as long as its transport. The ServerContext outlives all.
#ifndef PREFIXD_SERVER_CALL_BENCHMARK_H_
#define PREFIXD_SERVER_CALL_BENCHMARK_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/call/admission.h"
#include "server/call/call.h"
#include "server/lanes/lane_pool.h"
#include "server/work/measurement.h"

namespace prefixd {

// What all benchmarks share.
struct BenchmarkControl {
  bool enabled = true;
  uint64_t max_bytes = 0;  // Arrays of one measurement; besides, half of the free device memory.
  std::atomic<bool> running{false};
  std::atomic<bool> stopping{false};  // The server drains, and nobody waits for a benchmark: it ends, and none begins.
};

class BenchmarkTransport {
 public:
  virtual ~BenchmarkTransport() = default;
  // Sends what was measured, or why it was not: one OnWriteDone follows.
  virtual void Write(const Measurement& measurement) = 0;
  // Ends the benchmark. The last call, made exactly once, when no Write is under way.
  virtual void Finish(const Result& result) = 0;
};

class Benchmark {
 public:
  Benchmark(ServerContext* context, CallInfo call, BenchmarkTransport* transport);

  // Takes a place, and waits for what is asked for: one OnRequest or OnReadEnd follows. False: it has ended instead,
  // with PERMISSION_DENIED (BENCHMARK_OFF) or what Admission says.
  bool Start();
  // Begins, or ends at once: with the spec's error, RESOURCE_EXHAUSTED (BENCHMARK_RUNNING), INVALID_ARGUMENT as Expand,
  // or what Admission says. What the device does not serve, or has no memory for, is a measurement that was skipped,
  // and no error.
  void OnRequest(absl::StatusOr<BenchmarkSpec> spec);
  void OnReadEnd();  // No message comes any more.
  void OnWriteDone(bool ok);
  void OnCancel() { call_.Cancel().IgnoreError(); }
  // Nothing of the benchmark is under way any more; logs it. `delivered`: the caller could be told how it ended.
  void OnDone(bool delivered) { call_.Done(delivered); }

 private:
  absl::Status Admit();
  absl::Status Begin(const absl::StatusOr<BenchmarkSpec>& spec);
  Watched::Sight Look() const;
  void GiveUp(absl::Status why);
  void SubmitNext();
  TaskInfo NextTask() const;
  // On a lane thread.
  void MeasureNext(BorrowedLane& lane);
  absl::StatusOr<Measurement> MeasureOrSkip(Lane& lane, const BenchmarkCase& what);
  absl::Status CheckBytes(const BenchmarkCase& what) const;
  // Charges what the case takes of the host's memory to the budget of requests. Needs: CheckBytes is OK.
  absl::Status AdmitHostBytes(const BenchmarkCase& what, Admission::Ticket* bytes) const;
  // OK unless what was measured last says that a sample of this would take too long.
  absl::Status CheckTime(const BenchmarkCase& what) const;
  // OK while the benchmark is wanted.
  absl::Status Wanted() const;
  void End(absl::Status status, bool is_cut_short = false);

  ServerContext* const context_;
  BenchmarkTransport* const transport_;
  Call call_;
  // Whoever has the turn, a task on a lane or a write, has these; handing it on orders them.
  bool holds_control_ = false;
  uint32_t repetitions_ = 0;
  std::atomic<uint64_t> num_writes_{0};  // Begun and ended: odd while one is under way.
  std::atomic<bool> waits_{false};       // For what is asked for. Whoever sets it back goes on.
  std::atomic<bool> ended_{false};
  std::vector<BenchmarkCase> cases_;
  size_t next_ = 0;
  std::optional<Measurement> last_;  // That ran, as it was asked for.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_BENCHMARK_H_
