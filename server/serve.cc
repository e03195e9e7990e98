#include "server/serve.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/process.h"
#include "base/status.h"
#include "server/library_log.h"
#include "server/log.h"
#include "server/memory_limit.h"
#include "server/server.h"
#include "server/version.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace prefixd {
namespace {

[[noreturn]] void Leave(int code) {
  FlushLog(absl::Seconds(1));
#if defined(__SANITIZE_ADDRESS__)
  if (__lsan_do_recoverable_leak_check() != 0 && code == kExitOk) code = kExitFailed;
#endif
  _exit(code);
}

absl::Status TakeLogLevel(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  PREFIXD_ASSIGN_OR_RETURN(const std::string level, ReadLogLevel(file));
  SetLogLevel(level);
  return absl::OkStatus();
}

// What SIGHUP asks for. What is wrong changes nothing.
void Reload(const Options& options, Server& server) {
  LogInfo("SIGHUP: reading files again");
  if (absl::Status status = TakeLogLevel(options.log_level_file); !status.ok()) {
    LogError(StrCat("the log level stays: ", std::string(status.message())));
  }
  server.Reload(/*is_asked_for=*/true);
}

// Returns once one of `endings` came. While it waits it reads files that change, tells of dropped lines, and gives free
// memory back: slowly, for under load what is given back is soon wanted again.
void WaitFor(const sigset_t& endings, const Options& options, Server& server) {
  constexpr timespec kInterval = {.tv_sec = 1, .tv_nsec = 0};
  constexpr size_t kReleasedBytes = size_t{8} << 20;
  sigset_t signals = endings;
  sigaddset(&signals, SIGHUP);
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &kInterval);
    if (signal == SIGHUP) {
      Reload(options, server);
    } else if (signal > 0) {
      return;
    }
    server.Reload(/*is_asked_for=*/false);
    LogDropped();
    ReleaseFreeMemory(kReleasedBytes);
  }
}

// True if one of `signals` is waiting; takes it.
bool TakeSignal(const sigset_t& signals) {
  const timespec now = {};
  return sigtimedwait(&signals, nullptr, &now) > 0;
}

std::string Admin(const Options& options) {
  return options.admin_listen.empty() ? ""
                                      : StrCat(", for administrators on ", absl::StrJoin(options.admin_listen, ", "));
}

std::string Ports(const Server& server) {
  return server.ports().empty() ? "" : StrCat(" (port ", absl::StrJoin(server.ports(), ", "), ")");
}

}  // namespace

void Serve(Options options, const std::function<absl::StatusOr<std::unique_ptr<Device>>()>& open_device) {
  // Blocked before any thread starts, so that only this one takes them.
  sigset_t endings, reload;
  sigemptyset(&endings);
  sigaddset(&endings, SIGTERM);
  sigaddset(&endings, SIGINT);
  sigemptyset(&reload);
  sigaddset(&reload, SIGHUP);  // Ends nothing: while the server starts or drains it waits.
  pthread_sigmask(SIG_BLOCK, &endings, nullptr);
  pthread_sigmask(SIG_BLOCK, &reload, nullptr);
  signal(SIGPIPE, SIG_IGN);
  StartLog(options.log_level, options.log_format, options.log_lines_per_second);
  CaptureLibraryLogs();
  if (absl::Status status = TakeLogLevel(options.log_level_file); !status.ok()) {
    LogError(StrCat("can't start: ", std::string(status.message())));
    Leave(kExitFailed);
  }

  absl::StatusOr<std::unique_ptr<Device>> device = open_device();
  if (device.status().code() == absl::StatusCode::kFailedPrecondition && options.device == "auto") {
    LogWarning(StrCat("serving on the CPU, for the card can't be used: ", std::string(device.status().message())));
    device = OpenDevice("cpu", options.cpu_isa);
  }
  if (!device.ok()) {
    LogError(StrCat("can't open device ", options.device, ": ", std::string(device.status().message())));
    Leave(kExitFailed);
  }
  // Threads of gRPC and of the pools, of which there are some for each core, and the lanes'.
  const int num_threads = 4 * static_cast<int>(std::thread::hardware_concurrency()) + options.lanes + 48;
  if (absl::Status status = FitBudgets(FindMemoryLimit(num_threads), (*device)->info(), &options); !status.ok()) {
    LogError(StrCat("can't start: ", std::string(status.message())));
    Leave(kExitFailed);
  }
  const std::string device_name = (*device)->info().name;
  static std::atomic<int> exit_code{kExitOk};
  auto server = Server::Start(options, *std::move(device), [](Server::Failure failure) {
    exit_code = failure == Server::Failure::kDeviceLost ? kExitDeviceLost : kExitCannotAccept;
    kill(getpid(), SIGTERM);
  });
  if (!server.ok()) {
    LogError(StrCat("can't start: ", std::string(server.status().message())));
    Leave(kExitFailed);
  }
  LogInfo(StrCat("prefixd ", kVersion, " ready on ", absl::StrJoin(options.listen, ", "), Admin(options),
                 Ports(**server), ", device ", device_name, ", ", options.lanes, " lanes"));

  WaitFor(endings, options, **server);
  const bool device_lost = exit_code == kExitDeviceLost;
  LogInfo(device_lost ? std::string("stopping: the device failed")
                      : StrCat("draining for at most ", options.drain_timeout_seconds,
                               " seconds; a second signal stops at once"));
  // Where the device failed, so do its requests: at once, unless it hangs.
  const absl::Duration timeout = absl::Seconds(device_lost ? 1 : options.drain_timeout_seconds);
  const uint64_t cut_off = (*server)->Drain({.delay = absl::Seconds(options.drain_delay_seconds), .timeout = timeout},
                                            [&] { return TakeSignal(endings); });
  if (cut_off > 0) LogWarning(StrCat(cut_off, " requests were cut off"));
  LogDropped();
  LogInfo("stopped");
  Leave(exit_code);
}

}  // namespace prefixd
