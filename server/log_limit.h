// Bounds how many lines of a kind the log takes in a second, so that nobody fills the disk by calling often, and counts
// the rest. Threads: any.
#ifndef PREFIXD_SERVER_LOG_LIMIT_H_
#define PREFIXD_SERVER_LOG_LIMIT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace prefixd {

class LogLimit {
 public:
  // 0 for no bound.
  explicit LogLimit(uint64_t lines_per_second) : lines_per_second_(lines_per_second) {}

  // Whether a line of this kind is written now. Kinds are few: they are kept for good.
  bool Takes(const std::string& kind, absl::Time now);

  // How many lines were not written, ever.
  uint64_t num_dropped() const { return num_dropped_; }

  // How many lines of each kind were not written since this was last asked; kinds of which all were are left out.
  std::map<std::string, uint64_t> TakeDropped();

 private:
  struct Kind {
    int64_t second = 0;
    uint64_t lines = 0;  // In that second.
    uint64_t dropped = 0;
  };

  const uint64_t lines_per_second_;
  std::atomic<uint64_t> num_dropped_{0};
  Mutex mutex_;
  std::map<std::string, Kind> kinds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LOG_LIMIT_H_
