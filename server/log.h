// The log of prefixd: spdlog on standard error, as text or as one JSON object a line.
// Lines are written by a thread of its own from a bounded queue, so that a reader of standard error who stalls never
// stops the server: when the queue is full the oldest lines go. Threads: any.
#ifndef PREFIXD_SERVER_LOG_H_
#define PREFIXD_SERVER_LOG_H_

#include <string>

#include "absl/time/time.h"
#include "server/call/call_record.h"

namespace prefixd {

// Sets up the default logger. Needs: level and format as Options has checked them.
void StartLog(const std::string& level, const std::string& format);

// Writes what is queued, for at most `limit`; later lines are lost. Call it before the process ends.
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
