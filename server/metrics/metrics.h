// What the server tells Prometheus: counts of the calls that ended, and what it holds at the moment that it is asked.
// docs/operations.md has a table of all names.
//
// Labels are few: the method, how a call ended, and its reason, all of them words of ours. So the number of series is
// bounded, whatever callers send. Callers are a label only where that was asked for, so many of them: the first to
// come.
//
// Threads:   any.
// Ownership: the Metrics outlives the calls that it counts. `look` is called by whoever asks for the page.
// Cost:      a lock for two look-ups of short strings, and six counters: 0.1 us a call, also of many threads at once.
#ifndef PREFIXD_SERVER_METRICS_METRICS_H_
#define PREFIXD_SERVER_METRICS_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/call/call_record.h"

namespace prefixd {

// What is served. It stays while the process lives.
struct BuildInfo {
  std::string version;
  int numerics_version = 0;
  std::string device;
  std::string cpu_isa;
};

// What the server holds now, and what it has counted elsewhere.
struct ServerState {
  uint64_t requests = 0;
  uint64_t max_requests = 0;
  uint64_t request_bytes = 0;
  uint64_t max_request_bytes = 0;
  uint64_t arrays = 0;
  uint64_t max_arrays = 0;
  uint64_t array_bytes = 0;
  uint64_t max_array_bytes = 0;
  uint64_t staging_bytes = 0;
  uint64_t max_staging_bytes = 0;
  uint64_t device_memory_bytes = 0;
  uint64_t device_memory_free_bytes = 0;
  uint64_t connections = 0;
  uint64_t max_connections = 0;
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;
  uint64_t connections_ended = 0;  // For calls that were cancelled, or refused and not read.
  uint64_t lanes = 0;
  uint64_t lanes_busy = 0;
  uint64_t tasks_waiting = 0;
  uint64_t log_lines_over_rate = 0;
  uint64_t log_lines_overrun = 0;
  uint64_t resident_bytes = 0;
  uint64_t in_use_bytes = 0;
};

class Metrics {
 public:
  // max_callers: how many callers have series of their own. The rest share one.
  Metrics(const BuildInfo& build, uint64_t max_callers, std::function<ServerState()> look);

  // A call that ended.
  void Count(const CallRecord& record);

  // All of it, in Prometheus's text format.
  std::string Page() const;

 private:
  using Counters = prometheus::Family<prometheus::Counter>;
  using Outcome = std::pair<absl::StatusCode, std::string>;  // With the reason.

  // The series of a method: found once, then used without a lock.
  struct Method {
    prometheus::Histogram* seconds;
    prometheus::Counter* received_bytes;
    prometheus::Counter* sent_bytes;
    prometheus::Counter* elements;
    std::map<Outcome, prometheus::Counter*> requests;
  };

  // The series of a caller, by code.
  using Caller = std::map<absl::StatusCode, prometheus::Counter*>;

  Method& MethodOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  prometheus::Counter* RequestsOf(const std::string& name, Method* method, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  prometheus::Counter* RequestsOf(const CallInfo& call, absl::StatusCode code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t max_callers_;
  const std::function<ServerState()> look_;
  prometheus::Registry registry_;  // Owns all series.
  Counters& requests_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  Counters& received_bytes_;
  Counters& sent_bytes_;
  Counters& elements_;
  Counters* caller_requests_ = nullptr;  // Null without callers.
  Mutex mutex_;
  std::map<std::string, Method> methods_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Caller> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_METRICS_METRICS_H_
