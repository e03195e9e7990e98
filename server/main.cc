// prefixd: reads the flags, opens the device, serves until SIGTERM or SIGINT, drains, leaves.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <utility>
#include <variant>

#include "absl/strings/str_join.h"
#include "server/library_log.h"
#include "server/log.h"
#include "server/options.h"
#include "server/server.h"
#include "server/version.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace prefixd {
namespace {

// Leaves without destroying the gRPC server: in gRPC 1.51 that takes ten seconds once the callback API was used.
[[noreturn]] void Leave(int code) {
  FlushLog(absl::Seconds(1));
#if defined(__SANITIZE_ADDRESS__)
  if (__lsan_do_recoverable_leak_check() != 0 && code == kExitOk) code = kExitFailed;
#endif
  _exit(code);
}

// True if one of `signals` is waiting; takes it.
bool TakeSignal(const sigset_t& signals) {
  const timespec now = {};
  return sigtimedwait(&signals, nullptr, &now) > 0;
}

int Main(int argc, char** argv) {
  std::variant<Options, int> parsed = ParseOptions(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const Options& options = std::get<Options>(parsed);
  // Blocked before any thread starts, so that only the sigwait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  StartLog(options.log_level, options.log_format);
  CaptureLibraryLogs();

  signal(SIGPIPE, SIG_IGN);

  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options.device);
  if (device.status().code() == absl::StatusCode::kFailedPrecondition && options.device == "auto") {
    LogWarning(StrCat("serving on the CPU, for the card can't be used: ", std::string(device.status().message())));
    device = OpenDevice("cpu");
  }
  if (!device.ok()) {
    LogError(StrCat("can't open device ", options.device, ": ", device.status().message()));
    Leave(kExitFailed);
  }
  const std::string device_name = (*device)->info().name;
  static std::atomic<bool> device_lost{false};
  auto server = Server::Start(options, *std::move(device), [] {
    device_lost = true;
    kill(getpid(), SIGTERM);
  });
  if (!server.ok()) {
    LogError(StrCat("can't start: ", server.status().message()));
    Leave(kExitFailed);
  }
  LogInfo(StrCat("prefixd ", kVersion, " ready on ", absl::StrJoin(options.listen, ", "),
                 (*server)->ports().empty() ? "" : StrCat(" (port ", absl::StrJoin((*server)->ports(), ", "), ")"),
                 ", device ", device_name, ", ", options.lanes, " lanes"));

  int signal_number = 0;
  sigwait(&signals, &signal_number);
  const absl::Duration timeout = device_lost ? absl::ZeroDuration() : absl::Seconds(options.drain_timeout_seconds);
  LogInfo(device_lost ? std::string("stopping: the device failed")
                      : StrCat("draining for at most ", options.drain_timeout_seconds,
                               " seconds; a second signal stops at once"));
  const uint64_t cut_off = (*server)->Drain(timeout, [&] { return TakeSignal(signals); });
  if (cut_off > 0) LogWarning(StrCat(cut_off, " requests were cut off"));
  LogInfo("stopped");
  Leave(device_lost ? kExitDeviceLost : kExitOk);
}

}  // namespace
}  // namespace prefixd

int main(int argc, char** argv) { return prefixd::Main(argc, argv); }
