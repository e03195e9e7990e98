// The log of prefixd: spdlog on standard error, as text or as one JSON object a line.
// One thread writes the lines, from a bounded queue. If the reader of standard error stalls, the server goes on; when
// the queue is full its oldest lines are dropped. Lines are ASCII: what a caller says can't make lines of its own. Of
// what callers can bring about there are so many lines of a kind a second. Threads: any.
#ifndef PREFIXD_SERVER_LOG_H_
#define PREFIXD_SERVER_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/call/call_record.h"

namespace prefixd {

// The levels that there are, by name.
const std::vector<std::string>& LogLevels();

// Sets up the default logger. Needs: level and format as Options has checked them. Takes at most lines_per_second of a
// kind, or all if it is 0.
void StartLog(const std::string& level, const std::string& format, uint64_t lines_per_second);

// From now on. Needs: one of LogLevels.
void SetLogLevel(const std::string& level);

// The level that is all there is in a file. Errors: FAILED_PRECONDITION if it can't be read or has no level.
absl::StatusOr<std::string> ReadLogLevel(const std::string& path);

// Writes how many lines were dropped since it was last called. Called once a second.
void LogDropped();

// Lines that were never written, since the start.
struct DroppedLines {
  uint64_t over_rate = 0;  // There were too many of their kind in a second.
  uint64_t overrun = 0;    // Standard error is read too slowly.
};
DroppedLines CountDroppedLines();

// Writes the queued lines, for at most `limit`; what is not written by then is lost. Call it before the process ends,
// and nothing but Log... after it.
void FlushLog(absl::Duration limit);

// One line on a request that ended: id, caller, method, dtype, op, elements, bytes, status, stage times.
// Failures that are the server's own are errors, the rest is info. Those that end alike are of one kind.
void LogRequest(const CallRecord& record);

// A line on the server itself. With a kind, if a caller can bring it about.
void LogInfo(const std::string& message, const std::string& kind = "");
void LogWarning(const std::string& message, const std::string& kind = "");
void LogError(const std::string& message, const std::string& kind = "");

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LOG_H_
