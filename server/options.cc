#include "server/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <string_view>

#include "base/status.h"
#include "server/call/session.h"
#include "server/version.h"

namespace prefixd {
namespace {

int WrongUsage(const std::string& what) {
  std::cerr << "prefixd: " << what << "\nUsage: prefixd [OPTIONS]     (prefixd --help lists them)\n";
  return kExitUsage;
}

// gRPC itself takes port 443 where there is none.
bool IsAddress(std::string_view address) {
  if (address.starts_with("unix:")) return address.size() > 5;
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = address.substr(0, colon);
  if (host.find(':') != std::string_view::npos && !(host.front() == '[' && host.back() == ']')) return false;
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  return error == std::errc() && end == address.data() + address.size();
}

}  // namespace

std::variant<Options, int> ParseOptions(int argc, char** argv) {
  Options options;
  CLI::App app("prefixd: scan, reduce and compact on NVIDIA GPUs over gRPC", "prefixd");
  app.set_version_flag("--version", std::string("prefixd ") + kVersion);
  app.option_defaults()->always_capture_default();

  app.add_option("--listen", options.listen,
                 "Address to serve, HOST:PORT or unix:PATH; repeatable (in the environment: separated by commas). "
                 "Port 0 takes a free one. Callers are not authenticated: beyond loopback, put a proxy in front")
      ->envname("PREFIXD_LISTEN")
      ->delimiter(',')
      ->check([](const std::string& address) {
        return IsAddress(address) ? std::string() : "expected HOST:PORT, [IPV6]:PORT or unix:PATH, not " + address;
      });
  app.add_option("--device", options.device, "auto (the first CUDA device, else the CPU), cpu, or cuda:N")
      ->envname("PREFIXD_DEVICE")
      ->check([](const std::string& name) {
        const bool cuda = name.size() > 5 && name.size() < 9 && name.compare(0, 5, "cuda:") == 0 &&
                          name.find_first_not_of("0123456789", 5) == std::string::npos;
        return name == "auto" || name == "cpu" || cuda ? std::string() : "expected auto, cpu or cuda:N, not " + name;
      });
  app.add_option("--cpu-isa", options.cpu_isa,
                 "Instruction set that the CPU device uses: auto (the widest that this CPU has), sse2, avx2 or avx512; "
                 "neon on ARM. Results are the same")
      ->envname("PREFIXD_CPU_ISA")
      ->check(CLI::IsMember({"auto", "sse2", "avx2", "avx512", "neon"}));
  app.add_option(
         "--lanes", options.lanes,
         "Device lanes: requests that run at the same time; large ones on a third of them while small ones come")
      ->envname("PREFIXD_LANES")
      ->check(CLI::Range(1, 64));
  app.add_option("--batch-window-us", options.batch_window_us,
                 "How long a lane waits for more small requests of one shape where several wait already, in "
                 "microseconds: larger batches, later replies")
      ->envname("PREFIXD_BATCH_WINDOW_US")
      ->check(CLI::Range(uint64_t{0}, uint64_t{100'000}));
  app.add_option("--lane-poll-us", options.lane_poll_us,
                 "How long the first lane's thread looks for its next request before it sleeps, in microseconds, while "
                 "small requests come as close as that: sooner replies for most of a core. 0: never")
      ->envname("PREFIXD_LANE_POLL_US")
      ->check(CLI::Range(uint64_t{0}, uint64_t{10'000}));
  app.add_option("--port-file", options.port_file,
                 "File to write the bound TCP port to once the server is ready, for --listen HOST:0")
      ->envname("PREFIXD_PORT_FILE");
  app.add_option("--max-message-bytes", options.max_message_bytes, "Largest request message, in bytes")
      ->envname("PREFIXD_MAX_MESSAGE_BYTES")
      ->check(CLI::Range(uint64_t{2} << 20, uint64_t{1} << 30));
  app.add_option("--max-requests", options.max_requests, "Requests in flight; more are refused")
      ->envname("PREFIXD_MAX_REQUESTS")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20));
  app.add_option("--max-request-bytes", options.max_request_bytes,
                 "Memory for requests in flight, in bytes; more are refused. A stream counts as three of the largest "
                 "messages and 3 MiB. gRPC may hold twice as much of messages, those that have not come whole included")
      ->envname("PREFIXD_MAX_REQUEST_BYTES")
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50));
  app.add_option("--staging-bytes", options.staging_bytes,
                 "Pinned memory that replies are sent from, in bytes. Replies that find none free are copied")
      ->envname("PREFIXD_STAGING_BYTES")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40));
  app.add_option("--drain-timeout-seconds", options.drain_timeout_seconds,
                 "How long requests in flight may take to finish after SIGTERM, in seconds")
      ->envname("PREFIXD_DRAIN_TIMEOUT_SECONDS")
      ->check(CLI::Range(uint64_t{0}, uint64_t{86400}));
  app.add_flag("--no-benchmark", options.no_benchmark, "Refuse benchmarks, which anyone who can connect may ask for")
      ->envname("PREFIXD_NO_BENCHMARK");
  app.add_option(
         "--max-benchmark-bytes", options.max_benchmark_bytes,
         "Device memory for the arrays of one measurement of a benchmark, in bytes; never more than half of what "
         "is free")
      ->envname("PREFIXD_MAX_BENCHMARK_BYTES")
      ->check(CLI::Range(uint64_t{1} << 10, uint64_t{1} << 50));
  app.add_option("--log-level", options.log_level, "What to log")
      ->envname("PREFIXD_LOG_LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.add_option("--log-format", options.log_format, "How to log, on standard error: text, or json, an object a line")
      ->envname("PREFIXD_LOG_FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  app.footer(
      "Every flag can be set in the environment: --max-requests as PREFIXD_MAX_REQUESTS.\n"
      "Exit codes: 0 drained after SIGTERM or SIGINT; 1 could not start; 2 wrong usage; 3 the device failed, "
      "restart.\n");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    app.exit(asked_for_help);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return WrongUsage(error.what());
  }
  // One stream must fit, or every stream would be refused.
  if (const uint64_t least = Session::StreamBytes(options.max_message_bytes); options.max_request_bytes < least) {
    return WrongUsage(StrCat("--max-request-bytes must be at least ", least, ", what one stream of messages of ",
                             options.max_message_bytes, " bytes may hold"));
  }
  const auto is_tcp = [](const std::string& address) { return !address.starts_with("unix:"); };
  if (!options.port_file.empty() && std::none_of(options.listen.begin(), options.listen.end(), is_tcp)) {
    return WrongUsage("--port-file needs a HOST:PORT among --listen");
  }
  return options;
}

}  // namespace prefixd
