#include "server/call/caller_limits.h"

namespace prefixd {

CallerLimits CallerLimitsTable::Of(const std::string& name) const {
  auto it = limits_.find(name);
  if (it == limits_.end()) it = limits_.find(std::string(kEverybody));
  return it != limits_.end() ? it->second : CallerLimits{};
}

void CallerLimitsTable::Override(const std::string& name, const CallerLimits& limits) {
  CallerLimits all = Of(name);
  for (const auto limit : {&CallerLimits::requests, &CallerLimits::bytes, &CallerLimits::connections,
                           &CallerLimits::requests_per_second, &CallerLimits::share_percent}) {
    if (limits.*limit) all.*limit = limits.*limit;
  }
  limits_[name] = all;
}

}  // namespace prefixd
