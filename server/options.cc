#include "server/options.h"

#include <grp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "grpcpp/version_info.h"
#include "server/call/held_bytes.h"
#include "server/log.h"
#include "server/rpc/network.h"
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

// A port alone is one of loopback.
std::string MetricsAddress(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos ? StrCat("127.0.0.1:", text) : text;
}

// What is wrong with addresses, separated by commas; empty if nothing is. CLI11 asks of each, or, from 2.5 on and in
// the environment, of all at once.
std::string NoAddresses(const std::string& addresses) {
  for (const std::string& address : std::vector<std::string>(absl::StrSplit(addresses, ','))) {
    if (!IsAddress(address)) return StrCat("expected HOST:PORT, [IPV6]:PORT or unix:PATH, not ", address);
  }
  return "";
}

std::optional<mode_t> SocketMode(const std::string& text) {
  mode_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > 0777) return std::nullopt;
  return mode;
}

std::optional<gid_t> GroupOf(const std::string& name) {
  gid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return number;
  const group* entry = getgrnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->gr_gid;
}

constexpr std::string_view kPrefix = "PREFIXD_";

// --max-requests is PREFIXD_MAX_REQUESTS in the environment.
std::string EnvironmentName(const std::string& flag) {
  std::string name = StrCat(kPrefix, absl::AsciiStrToUpper(flag));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Set by others: prefixctl's address, and what Kubernetes and Docker tell of a service whose name begins with prefixd,
// such as PREFIXD_SERVICE_HOST, PREFIXD_PORT_50051_TCP, and PREFIXD_PORT, which is a URL.
bool IsOfOthers(const std::string& name, const std::string& value) {
  static const std::regex service("PREFIXD_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_[0-9]+_[A-Z_]+)");
  static const std::regex port("PREFIXD_([A-Z0-9_]+_)?PORT");
  return name == "PREFIXD_SERVER" || std::regex_match(name, service) ||
         (std::regex_match(name, port) && value.find("://") != std::string::npos);
}

// How many letters one has to put in, take out or change to make one word of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // From the first i letters of a to the first j of b.
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row[b.size()];
}

// What is wrong with the variables of the environment that look like ours; empty if nothing is.
std::string WrongVariable(const CLI::App& app) {
  std::map<std::string, const CLI::Option*> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_envname().empty()) known[option->get_envname()] = option;
  }
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(*variable, absl::MaxSplits('=', 1));
    const auto& [name, value] = parts;
    if (!name.starts_with(kPrefix) || IsOfOthers(name, value)) continue;
    if (const auto it = known.find(name); it != known.end()) {
      if (it->second->count() == 0 && !value.empty()) {
        return StrCat(name, " is set to '", absl::CHexEscape(value), "', which is no value of --",
                      it->second->get_single_name());
      }
      continue;
    }
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
      return Distance(name, a.first) < Distance(name, b.first);
    });
    return StrCat("there is no ", absl::CHexEscape(name), " in the environment: did you mean ", nearest->first, "?");
  }
  return "";
}

}  // namespace

std::variant<Options, int> ParseOptions(int argc, char** argv) {
  Options options;
  CLI::App app("prefixd: scan, reduce and compact on NVIDIA GPUs over gRPC", "prefixd");
  app.set_version_flag("--version", StrCat("prefixd ", kVersion, " (gRPC ", GRPC_CPP_VERSION_STRING, ")"));
  app.option_defaults()->always_capture_default();

  app.add_option("--listen", options.listen,
                 "Address to serve, HOST:PORT or unix:PATH; repeatable (in the environment: separated by commas). "
                 "Port 0 takes a free one. Beyond loopback give it --tls-certificate, or put a proxy in front")
      ->delimiter(',')
      ->check(NoAddresses);
  app.add_option("--admin-listen", options.admin_listen,
                 "Address for information, reflection, diagnostics and benchmarks, as --listen, which then serves only "
                 "the primitives and health; repeatable (default: all is served on --listen)")
      ->delimiter(',')
      ->check(NoAddresses);
  CLI::Option* const certificate = app.add_option(
      "--tls-certificate", options.tls.certificate,
      "PEM file with the server's certificate, and those between it and its authority: TCP addresses speak TLS, from "
      "1.2 on. Read again when it changes, and on SIGHUP");
  CLI::Option* const key = app.add_option("--tls-key", options.tls.key,
                                          "PEM file with the certificate's private key, without a password; read again "
                                          "likewise")
                               ->needs(certificate);
  certificate->needs(key);
  app.add_option("--tls-client-ca", options.tls.client_ca,
                 "PEM file with the authorities of callers: who has no certificate of theirs can't connect over TLS. "
                 "Read again likewise")
      ->needs(certificate);
  app.add_option(
      "--token-file", options.token_file,
      "File with a line for each token: a name, the token's SHA-256, and the caller's limits if he has any, as "
      "in --caller-limits. Who has neither a token nor a "
      "certificate of --tls-client-ca is refused; tokens are taken over TLS and Unix sockets only. Read "
      "again on SIGHUP");
  app.add_option("--trusted-proxy", options.trusted_proxies,
                 "ADDRESS, ADDRESS/BITS or unix, from which x-prefixd-caller names the caller; it is refused from "
                 "elsewhere. Repeatable")
      ->delimiter(',')
      ->check([](const std::string& networks) {
        for (const std::string& network : std::vector<std::string>(absl::StrSplit(networks, ','))) {
          if (!Network::Parse(network)) return StrCat("expected ADDRESS, ADDRESS/BITS or unix, not ", network);
        }
        return std::string();
      });
  app.add_option("--caller-limits", options.caller_limits,
                 "File with a line for each caller: his name, as the log has it, or * for all others, and what he may "
                 "have: requests=N and bytes=N at once, connections=N with requests under way, "
                 "requests_per_second=N, share_percent=N in place of --caller-share-percent. Read again on SIGHUP");
  app.add_option("--device", options.device, "auto (the first CUDA device, else the CPU), cpu, or cuda:N")
      ->check([](const std::string& name) {
        const bool cuda = name.size() > 5 && name.size() < 9 && name.compare(0, 5, "cuda:") == 0 &&
                          name.find_first_not_of("0123456789", 5) == std::string::npos;
        return name == "auto" || name == "cpu" || cuda ? std::string() : "expected auto, cpu or cuda:N, not " + name;
      });
  app.add_option("--cpu-isa", options.cpu_isa,
                 "Instruction set that the CPU device uses: auto (the widest that this CPU has), sse2, avx2 or avx512; "
                 "neon on ARM. Results are the same")
      ->check(CLI::IsMember({"auto", "sse2", "avx2", "avx512", "neon"}));
  app.add_option(
         "--algorithms", options.algorithms,
         "What may be asked for by name: all algorithms of the device, or the default ones. The others are there to "
         "be compared with, and some take a lane long")
      ->check(CLI::IsMember({"all", "default"}));
  app.add_option(
         "--lanes", options.lanes,
         "Device lanes: requests that run at the same time; large ones on a third of them while small ones come")
      ->check(CLI::Range(1, 64));
  app.add_option("--batch-window-us", options.batch_window_us,
                 "How long a lane waits for more small requests of one shape where several wait already, in "
                 "microseconds: larger batches, later replies")
      ->check(CLI::Range(uint64_t{0}, uint64_t{100'000}));
  app.add_option("--lane-poll-us", options.lane_poll_us,
                 "How long a thread of the first two lanes looks for its next request before it sleeps, in "
                 "microseconds, while requests come as close as that: sooner replies for most of a core each. 0: never")
      ->check(CLI::Range(uint64_t{0}, uint64_t{10'000}));
  app.add_option("--port-file", options.port_file,
                 "File to write the bound TCP port to once the server is ready, for --listen HOST:0");
  app.add_option_function<std::string>(
         "--socket-mode", [&](const std::string& text) { options.socket_mode = *SocketMode(text); },
         "Access to Unix sockets' files, in octal: who may write may connect. 0660 lets --socket-group in")
      ->default_str("0600")
      ->check([](const std::string& text) {
        return SocketMode(text) ? std::string() : "expected an octal number up to 0777, such as 0660, not " + text;
      });
  app.add_option_function<std::string>(
         "--socket-group", [&](const std::string& name) { options.socket_group = GroupOf(name); },
         "Group that Unix sockets' files are given to, by name or number (default: that of the process)")
      ->check([](const std::string& name) { return GroupOf(name) ? std::string() : "there is no group " + name; });
  CLI::Option* const metrics_listen =
      app.add_option(
             "--metrics-listen", options.metrics_listen,
             "Address to serve metrics for Prometheus on, at /metrics: HOST:PORT, or a PORT of 127.0.0.1. Port 0 "
             "takes a free one (default: none are served). Whoever can connect can read them")
          ->check([](const std::string& address) {
            return IsAddress(MetricsAddress(address)) && !address.starts_with("unix:")
                       ? std::string()
                       : "expected PORT, HOST:PORT or [IPV6]:PORT, not " + address;
          });
  app.add_option(
         "--metrics-callers", options.metrics_callers,
         "Callers, the first to come, whose requests are counted by name in the metrics, up to 10,000; the rest "
         "are counted together")
      ->check(CLI::Range(uint64_t{0}, uint64_t{10'000}))
      ->needs(metrics_listen);
  app.add_option("--max-connections", options.max_connections,
                 "Connections at once; more are closed at once. Never more than the limit of open files allows")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20));
  app.add_option(
         "--max-connections-per-address", options.max_connections_per_address,
         "Connections at once from one address, IPv6 network of 64 bits, or user of a Unix socket; never more than "
         "half of what the others leave")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20));
  app.add_option("--max-message-bytes", options.max_message_bytes, "Largest request message, in bytes")
      ->check(CLI::Range(uint64_t{2} << 20, uint64_t{1} << 30));
  app.add_option("--max-requests", options.max_requests, "Requests in flight; more are refused")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 20));
  CLI::Option* const max_request_bytes = app.add_option(
      "--max-request-bytes", options.max_request_bytes,
      "Memory for requests in flight, in bytes; more are refused. A stream counts for what it holds. gRPC may hold "
      "twice as much of messages, those that have not come whole included. Lowered, unless it is "
      "set, to what machine, cgroup and limits of the process leave");
  max_request_bytes->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50));
  app.add_option("--caller-share-percent", options.caller_share_percent,
                 "Share of requests and memory that one caller gets of what the others leave free, in percent; a "
                 "connection gets as much of its address's share. 100: one may have all")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100}));
  app.add_option("--max-arrays", options.max_arrays, "Arrays that are resident at once; more are refused. 0: none")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 20));
  app.add_option("--max-array-bytes", options.max_array_bytes,
                 "Device memory for resident arrays, in bytes; more is refused. Default: half of a card's memory, or a "
                 "quarter of the host's")
      ->check(CLI::Range(uint64_t{1} << 20, uint64_t{1} << 50));
  app.add_option("--array-ttl-seconds", options.array_ttl_seconds,
                 "How long an array lives whose caller does not say, in seconds")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31));
  app.add_option("--max-array-ttl-seconds", options.max_array_ttl_seconds,
                 "How long an array may live at most, in seconds")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31));
  const auto timeout = [&](const char* name, uint64_t& seconds, const char* what) {
    app.add_option(name, seconds, what)->check(CLI::Range(uint64_t{0}, uint64_t{1} << 31));
  };
  timeout("--first-message-timeout-seconds", options.first_message_timeout_seconds,
          "How long a call may send no message at all before it is ended, in seconds. 0: for ever");
  timeout("--message-timeout-seconds", options.message_timeout_seconds,
          "How long a stream may send no further message, while nothing else is under way, or wait for memory for "
          "one, before it is ended, in seconds. 0: for ever");
  timeout("--reply-timeout-seconds", options.reply_timeout_seconds,
          "How long a reply may wait to be taken before its call is ended, in seconds. 0: for ever");
  CLI::Option* const staging_bytes =
      app.add_option("--staging-bytes", options.staging_bytes,
                     "Pinned memory that replies are sent from, in bytes. Replies that find none free are copied. "
                     "Lowered, unless it is set, to a sixteenth of the memory there is");
  staging_bytes->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40));
  app.add_option(
         "--drain-delay-seconds", options.drain_delay_seconds,
         "How long everything is still served after SIGTERM, while health says NOT_SERVING, in seconds: behind a "
         "balancer longer than it takes to notice")
      ->check(CLI::Range(uint64_t{0}, uint64_t{86400}));
  app.add_option(
         "--max-connection-age-seconds", options.max_connection_age_seconds,
         "Age at which a connection's caller is told to open another, in seconds, a tenth more or less; calls "
         "under way end first. 0: never. Default: three quarters of --drain-delay-seconds, so that no call meets "
         "the server's end; with a --trusted-proxy never")
      ->check(CLI::Range(uint64_t{0}, uint64_t{86400}));
  app.add_option("--drain-timeout-seconds", options.drain_timeout_seconds,
                 "How long requests in flight may take to finish after SIGTERM, in seconds")
      ->check(CLI::Range(uint64_t{0}, uint64_t{86400}));
  CLI::Option* const benchmark = app.add_flag(
      "--benchmark", options.benchmark,
      "Run benchmarks, which anyone who can connect may ask for, also where other hosts can connect (default: only "
      "where all addresses that serve them are loopback or Unix sockets)");
  app.add_flag("--no-benchmark", options.no_benchmark, "Refuse benchmarks everywhere")->excludes(benchmark);
  app.add_option(
         "--max-benchmark-bytes", options.max_benchmark_bytes,
         "Device memory for the arrays of one measurement of a benchmark, in bytes; never more than half of what "
         "is free")
      ->check(CLI::Range(uint64_t{1} << 10, uint64_t{1} << 50));
  CLI::Option* const log_level =
      app.add_option("--log-level", options.log_level, "What to log")->check(CLI::IsMember(LogLevels()));
  app.add_option("--log-level-file", options.log_level_file,
                 "File with the --log-level, a word, read at start and again on SIGHUP")
      ->excludes(log_level);
  app.add_option("--log-format", options.log_format, "How to log, on standard error: text, or json, an object a line")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option(
         "--log-lines-per-second", options.log_lines_per_second,
         "Lines of a kind that are written in a second, such as requests that ended alike; the rest is counted, "
         "and the number written. 0: all")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 32));
  app.footer(
      "Every flag can be set in the environment: --max-requests as PREFIXD_MAX_REQUESTS.\n"
      "SIGHUP reads the files of TLS, --token-file, --caller-limits and --log-level-file again, and nothing else.\n"
      "Exit codes: 0 drained after SIGTERM or SIGINT; 1 could not start; 2 wrong usage; 3 the device failed, "
      "4 no connection can be accepted any more: restart.\n");

  for (CLI::Option* option : app.get_options()) {
    const std::string& name = option->get_single_name();
    if (name != "help" && name != "version") option->envname(EnvironmentName(name));
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    app.exit(asked_for_help);
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return WrongUsage(error.what());
  }
  if (const std::string wrong = WrongVariable(app); !wrong.empty()) return WrongUsage(wrong);
  if (!options.metrics_listen.empty()) options.metrics_listen = MetricsAddress(options.metrics_listen);
  options.asks_max_request_bytes = max_request_bytes->count() > 0;
  options.asks_staging_bytes = staging_bytes->count() > 0;
  // One stream must fit, or every stream would be refused.
  if (const uint64_t least = HeldBytes::MostOfStream(options.max_message_bytes); options.max_request_bytes < least) {
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
