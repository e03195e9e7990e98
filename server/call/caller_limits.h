// What callers may have, by name: what an operator has written into a file.
//
// Threads: none of its own; what is given to Admission does not change.
#ifndef PREFIXD_SERVER_CALL_CALLER_LIMITS_H_
#define PREFIXD_SERVER_CALL_CALLER_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace prefixd {

// Nothing: there is no such limit.
struct CallerLimits {
  std::optional<uint64_t> requests;             // At once.
  std::optional<uint64_t> bytes;                // At once.
  std::optional<uint64_t> connections;          // With requests under way.
  std::optional<uint64_t> requests_per_second;  // And a second's worth after a pause.
  std::optional<uint64_t> share_percent;        // Nothing: --caller-share-percent.

  bool operator==(const CallerLimits&) const = default;
};

class CallerLimitsTable {
 public:
  // The limits of everybody else.
  static constexpr std::string_view kEverybody = "*";

  // False: the name has a line already.
  bool Add(const std::string& name, const CallerLimits& limits) { return limits_.emplace(name, limits).second; }

  // Those of the name's own line, else everybody's.
  CallerLimits Of(const std::string& name) const;

  // What `limits` has goes before what the name has.
  void Override(const std::string& name, const CallerLimits& limits);

 private:
  absl::flat_hash_map<std::string, CallerLimits> limits_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CALL_CALLER_LIMITS_H_
