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
#endif

namespace prefixd {

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
#endif
}

}  // namespace prefixd
