// The lines of files in which an operator writes who may call, and what he may have: a name, and words behind it. A
// name with blanks stands in double quotes, in which \ goes before a quote or another \: as the log has it. A line that
// begins with # is a comment.
//
//   alice                            requests=64
//   "CN=Bob Smith,O=Tests"           requests_per_second=100 share_percent=80
//
// Errors name the line, and never its text, which may hold a token.
//
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_CALLER_LINES_H_
#define PREFIXD_SERVER_RPC_CALLER_LINES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/call/caller_limits.h"

namespace prefixd {

struct CallerLine {
  size_t number = 0;
  std::string name;  // 1 to 256 bytes of printable ASCII.
  std::vector<std::string> words;

  // FAILED_PRECONDITION: what is wrong with it.
  absl::Status Error(std::string_view what) const;
};

// At most 10,000, for each token is looked at for every call. Errors: FAILED_PRECONDITION.
absl::StatusOr<std::vector<CallerLine>> ReadCallerLines(std::string_view text);

// requests=N bytes=N connections=N requests_per_second=N share_percent=N, each once at most. A limit of bytes below
// `min_bytes` is an error. Errors: FAILED_PRECONDITION.
absl::StatusOr<CallerLimits> ReadLimits(const CallerLine& line, absl::Span<const std::string> words,
                                        uint64_t min_bytes);

// The file of --caller-limits: each line is a name with its limits. Errors: FAILED_PRECONDITION.
absl::StatusOr<CallerLimitsTable> ReadLimitsFile(std::string_view text, uint64_t min_bytes);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CALLER_LINES_H_
