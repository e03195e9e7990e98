#include "server/log_limit.h"

#include <utility>

namespace prefixd {

bool LogLimit::Takes(const std::string& kind, absl::Time now) {
  if (lines_per_second_ == 0) return true;
  const int64_t second = absl::ToUnixSeconds(now);
  MutexLock lock(mutex_);
  Kind& here = kinds_[kind];
  if (std::exchange(here.second, second) != second) here.lines = 0;
  if (here.lines < lines_per_second_) {
    ++here.lines;
    return true;
  }
  ++here.dropped;
  ++num_dropped_;
  return false;
}

std::map<std::string, uint64_t> LogLimit::TakeDropped() {
  std::map<std::string, uint64_t> dropped;
  MutexLock lock(mutex_);
  for (auto& [name, kind] : kinds_) {
    if (const uint64_t lines = std::exchange(kind.dropped, 0); lines > 0) dropped[name] = lines;
  }
  return dropped;
}

}  // namespace prefixd
