// The flags of prefixd, checked once.
#ifndef PREFIXD_SERVER_OPTIONS_H_
#define PREFIXD_SERVER_OPTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/rpc/tls_files.h"

namespace prefixd {

struct Options {
  // What is served, and where.
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  std::string device = "auto";
  std::string cpu_isa = "auto";
  std::string algorithms = "all";
  int lanes = 6;
  uint64_t batch_window_us = 0;
  uint64_t lane_poll_us = 250;  // More than a caller nearby takes from a reply to its next request, both ways included.
  std::string port_file;
  mode_t socket_mode = 0600;
  std::optional<gid_t> socket_group;
  std::string metrics_listen;  // HOST:PORT; empty: metrics are off.
  uint64_t metrics_callers = 0;
  std::vector<std::string> admin_listen;  // Empty: what is for administrators is served on all of listen.

  // Who may call.
  TlsFiles tls;  // No certificate: TCP addresses are served without TLS.
  std::string token_file;
  std::vector<std::string> trusted_proxies;
  std::string caller_limits;  // A file.

  // Limits.
  uint64_t max_connections = 8192;
  uint64_t max_connections_per_address = 4096;
  uint64_t max_message_bytes = uint64_t{4} << 20;
  uint64_t max_requests = 1024;
  uint64_t max_request_bytes = uint64_t{2} << 30;
  bool asks_max_request_bytes = false;  // Or it may be lowered to what there is memory for;
  uint64_t caller_share_percent = 50;
  uint64_t max_arrays = 10'000;
  std::optional<uint64_t> max_array_bytes;  // None: a part of the device's memory.
  uint64_t array_ttl_seconds = 600;
  uint64_t max_array_ttl_seconds = 86'400;
  uint64_t first_message_timeout_seconds = 30;
  uint64_t message_timeout_seconds = 60;
  uint64_t reply_timeout_seconds = 60;
  uint64_t staging_bytes = uint64_t{128} << 20;
  bool asks_staging_bytes = false;  // so may this.
  uint64_t drain_delay_seconds = 0;
  uint64_t drain_timeout_seconds = 30;
  std::optional<uint64_t> max_connection_age_seconds;  // None: such that all move within the drain delay.
  bool benchmark = false;                              // Also where other hosts can connect.
  bool no_benchmark = false;                           // Not even where none can.
  uint64_t max_benchmark_bytes = uint64_t{8} << 30;

  // The log.
  std::string log_level = "info";
  std::string log_level_file;  // If there is one, the level is in it.
  std::string log_format = "text";
  uint64_t log_lines_per_second = 1000;
};

// How the process ends; documented in --help for restart policies.
enum ExitCode : int {
  kExitOk = 0,            // Drained after SIGTERM or SIGINT.
  kExitFailed = 1,        // Could not start.
  kExitUsage = 2,         // Wrong flags.
  kExitDeviceLost = 3,    // The device failed: restart.
  kExitCannotAccept = 4,  // No connection can be accepted any more: restart.
};

// Flags, then the environment (PREFIXD_LISTEN for --listen, and so on), then defaults. Prints help, the version or what
// is wrong, and returns the exit code, where the process is to end at once.
std::variant<Options, int> ParseOptions(int argc, char** argv);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_OPTIONS_H_
