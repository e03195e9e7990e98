#include "server/library_log.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/version_info.h>

#include <string>

#include "base/status.h"
#include "server/log.h"

// From these versions on both log through Abseil and have no handlers of their own.
#define PREFIXD_PROTOBUF_HAS_HANDLER (GOOGLE_PROTOBUF_VERSION < 4022000)
#define PREFIXD_GRPC_HAS_HANDLER (GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 65)

#if PREFIXD_PROTOBUF_HAS_HANDLER
#include <google/protobuf/stubs/logging.h>
#endif
#if PREFIXD_GRPC_HAS_HANDLER
#include <grpc/support/log.h>
#else
#include "absl/log/globals.h"
#include "absl/log/initialize.h"
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#endif

namespace prefixd {

#if !PREFIXD_GRPC_HAS_HANDLER
namespace {

class AbseilLog : public absl::LogSink {
 public:
  void Send(const absl::LogEntry& entry) override {
    const std::string message = StrCat("grpc: ", entry.text_message());
    if (entry.log_severity() >= absl::LogSeverity::kError) {
      LogError(message, "grpc error");
    } else if (entry.log_severity() == absl::LogSeverity::kWarning) {
      LogWarning(message, "grpc warning");
    } else {
      LogInfo(message, "grpc");
    }
  }
};

}  // namespace
#endif

void CaptureLibraryLogs() {
#if PREFIXD_PROTOBUF_HAS_HANDLER
  // A message that does not parse is the caller's mistake, and the caller hears of it.
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel level, const char*, int, const std::string& message) {
    if (level >= google::protobuf::LOGLEVEL_WARNING) LogWarning(StrCat("protobuf: ", message), "protobuf");
  });
#endif
#if PREFIXD_GRPC_HAS_HANDLER
  gpr_set_log_function([](gpr_log_func_args* args) {
    const std::string message = StrCat("grpc: ", args->message);
    if (args->severity == GPR_LOG_SEVERITY_ERROR) {
      LogError(message, "grpc error");
    } else if (args->severity == GPR_LOG_SEVERITY_INFO) {
      LogInfo(message, "grpc");
    }
  });
#else
  // Abseil writes to standard error by itself, whatever it is told, until it is initialized.
  absl::InitializeLog();
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kFatal);  // The process ends there, before our log is written.
  absl::AddLogSink(new AbseilLog);                             // Until the process ends.
#endif
}

}  // namespace prefixd
