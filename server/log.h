// The log of prefixd: spdlog on standard error, as text or as one JSON object a line.
// One thread writes the lines, from a bounded queue. If the reader of standard error stalls, the server goes on; when
// the queue is full its oldest lines are dropped. Threads: any.
#ifndef PREFIXD_SERVER_LOG_H_
#define PREFIXD_SERVER_LOG_H_

#include <string>

#include "absl/time/time.h"
#include "server/call/call_record.h"

namespace prefixd {

// Sets up the default logger. Needs: level and format as Options has checked them.
void StartLog(const std::string& level, const std::string& format);

// Writes the queued lines, for at most `limit`; what is not written by then is lost. Call it before the process ends.
void FlushLog(absl::Duration limit);

// One line on a request that ended: id, caller, method, dtype, op, elements, bytes, status, stage times.
// Failures that are the server's own are errors, the rest is info.
void LogRequest(const CallRecord& record);

// A line on the server itself.
void LogInfo(const std::string& message);
void LogWarning(const std::string& message);
void LogError(const std::string& message);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_LOG_H_
