// The life of the process: it serves until SIGTERM or SIGINT, drains, and ends with an exit code.
#ifndef PREFIXD_SERVER_SERVE_H_
#define PREFIXD_SERVER_SERVE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "server/options.h"

namespace prefixd {

// Starts the log, opens the device, serves, and drains after a signal. Never returns: it ends the process with an
// ExitCode, without destroying the server, which would wait for ever for a call that a hung device holds.
// Needs: no thread was started yet, for signals must be blocked in all of them.
[[noreturn]] void Serve(Options options, const std::function<absl::StatusOr<std::unique_ptr<Device>>()>& open_device);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_SERVE_H_
