#include "server/log.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "server/log_limit.h"
#include "server/read_file.h"
#include "spdlog/async.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace prefixd {
namespace {

// Never destroyed: a request that a hung device lets go may still log while the process ends.
struct Logger {
  explicit Logger(uint64_t lines_per_second) : limit(lines_per_second) {}
  bool json = false;
  LogLimit limit;
  std::atomic<size_t> num_lost = 0;  // Lines that the queue had no room for, and that LogDropped has told of.
  std::shared_ptr<spdlog::details::thread_pool> writer;
  std::shared_ptr<spdlog::logger> logger;
};
Logger* g_log = nullptr;  // Set once, by StartLog.

bool ShouldLog(spdlog::level::level_enum level) { return g_log != nullptr && g_log->logger->should_log(level); }

// Callers' bytes may be in any line: whatever could end a line, or move a terminal's cursor, is escaped.
std::string Printable(std::string_view text) {
  std::string printable;
  for (const char c : text) {
    if (absl::ascii_isprint(static_cast<unsigned char>(c))) {
      printable += c;
    } else {
      absl::StrAppendFormat(&printable, "\\x%02x", static_cast<unsigned char>(c));
    }
  }
  return printable;
}

// In ASCII. Bytes that are no UTF-8 are replaced, never thrown over.
std::string Json(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::ordered_json::error_handler_t::replace);
}

// A line is a JSON object whose text form is `key=value` pairs; either way the order is the one written here.
void Log(spdlog::level::level_enum level, const nlohmann::ordered_json& fields) {
  if (!ShouldLog(level)) return;
  if (g_log->json) {
    const std::string object = Json(fields);
    g_log->logger->log(level, "{}", std::string_view(object).substr(1));  // The pattern has written the brace.
    return;
  }
  std::string line;
  for (const auto& [key, value] : fields.items()) {
    if (key == "message") {
      line = Printable(value.get<std::string>());
      continue;
    }
    line += StrCat(line.empty() ? "" : " ", key, "=", Json(value));
  }
  g_log->logger->log(level, "{}", line);
}

// Lines without a kind are always taken.
bool IsTaken(spdlog::level::level_enum level, const std::string& kind) {
  return ShouldLog(level) && (kind.empty() || g_log->limit.Takes(kind, absl::Now()));
}

void LogMessage(spdlog::level::level_enum level, const std::string& message, const std::string& kind) {
  if (IsTaken(level, kind)) Log(level, {{"message", message}});
}

bool IsOurs(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

}  // namespace

void StartLog(const std::string& level, const std::string& format, uint64_t lines_per_second) {
  constexpr size_t kQueuedLines = 8192;
  auto* log = new Logger(lines_per_second);
  log->json = format == "json";
  log->writer = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, /*threads_n=*/1);
  auto logger = std::make_shared<spdlog::async_logger>("prefixd", std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                                       log->writer, spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(spdlog::level::from_str(level));
  logger->set_pattern(log->json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v)" : "%Y-%m-%dT%H:%M:%S.%fZ %l %v",
                      spdlog::pattern_time_type::utc);
  logger->flush_on(spdlog::level::trace);
  logger->set_error_handler([](const std::string&) {});  // What comes after FlushLog has no writer, and is let go.
  log->logger = std::move(logger);
  g_log = log;
}

const std::vector<std::string>& LogLevels() {
  static const auto& levels = *new std::vector<std::string>{"trace", "debug", "info", "warn", "error", "off"};
  return levels;
}

void SetLogLevel(const std::string& level) {
  if (g_log != nullptr) g_log->logger->set_level(spdlog::level::from_str(level));
}

absl::StatusOr<std::string> ReadLogLevel(const std::string& path) {
  PREFIXD_ASSIGN_OR_RETURN(const std::string text, ReadFile("--log-level-file", path));
  std::string level(absl::StripAsciiWhitespace(text));
  if (std::find(LogLevels().begin(), LogLevels().end(), level) == LogLevels().end()) {
    return absl::FailedPreconditionError(
        StrCat("--log-level-file ", path, ": expected one of ", absl::StrJoin(LogLevels(), ", "), " in it, alone"));
  }
  return level;
}

void FlushLog(absl::Duration limit) {
  if (g_log == nullptr) return;
  // Letting go of the writer waits until it has written everything; it may be stuck.
  const auto done = std::make_shared<absl::Notification>();
  std::thread([done] {
    g_log->writer.reset();
    done->Notify();
  }).detach();
  done->WaitForNotificationWithTimeout(limit);
}

void LogRequest(const CallRecord& record) {
  const Result& result = record.result;
  const Timing& timing = result.timing;
  const auto level = IsOurs(result.status.code()) ? spdlog::level::err : spdlog::level::info;
  const bool ok = result.status.ok();
  const std::string reason = ok ? "" : ErrorReason(result.status);
  const std::string code = absl::StatusCodeToString(result.status.code());
  if (!IsTaken(level, ok ? "request" : StrCat("request ", reason.empty() ? code : reason))) return;
  nlohmann::ordered_json fields = {{"message", "request"},
                                   {"id", result.request_id},
                                   {"caller", record.call.caller.name},
                                   {"connection", record.call.caller.connection},
                                   {"method", record.call.method}};
  if (!record.call.trace_parent.empty()) fields["traceparent"] = record.call.trace_parent;
  if (record.operation != nullptr) {
    const DType dtype = InputOf(*record.operation);
    const DType out_dtype = OutputOf(*record.operation);
    fields["dtype"] = Name(dtype);
    if (out_dtype != dtype) fields["out_dtype"] = Name(out_dtype);
    if (const auto op = OpOf(*record.operation)) fields["op"] = Name(*op);
    const Precision precision = std::visit([](const auto& one) { return PrecisionOf(one); }, *record.operation);
    if (precision != Precision::kNative) fields["precision"] = Name(precision);
  }
  fields["items"] = timing.num_items;
  fields["bytes_in"] = record.num_bytes_in;
  fields["bytes_out"] = record.num_bytes_out;
  fields["status"] = code;
  if (!ok) {
    fields["reason"] = reason;
    fields["error"] = std::string(result.status.message());
  }
  const auto stage = [&](const char* name, std::optional<int64_t> ns) {
    if (ns) fields[name] = *ns / 1000;
  };
  stage("queue_us", timing.queue_ns);
  stage("host_copy_us", timing.host_copy_ns);
  stage("host_to_device_us", timing.host_to_device_ns);
  stage("kernel_us", timing.kernel_ns);
  stage("device_to_host_us", timing.device_to_host_ns);
  stage("total_us", timing.server_total_ns);
  Log(level, fields);
}

void LogInfo(const std::string& message, const std::string& kind) { LogMessage(spdlog::level::info, message, kind); }
void LogWarning(const std::string& message, const std::string& kind) { LogMessage(spdlog::level::warn, message, kind); }
void LogError(const std::string& message, const std::string& kind) { LogMessage(spdlog::level::err, message, kind); }

DroppedLines CountDroppedLines() {
  if (g_log == nullptr) return {};
  return {.over_rate = g_log->limit.num_dropped(), .overrun = g_log->writer->overrun_counter()};
}

void LogDropped() {
  if (g_log == nullptr || g_log->writer == nullptr) return;
  for (const auto& [kind, lines] : g_log->limit.TakeDropped()) {
    LogWarning(StrCat(lines, " more lines '", kind, "' were not written: there were too many a second"));
  }
  const size_t lost = g_log->writer->overrun_counter();
  if (const size_t before = g_log->num_lost.exchange(lost); lost > before) {
    LogWarning(StrCat(lost - before, " lines were lost: standard error is read too slowly"));
  }
}

}  // namespace prefixd
