// prefixctl: scan, reduce and compact files from the command line.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/bench.h"
#include "client/cli/commands.h"
#include "client/cli/file.h"
#include "client/cli/load.h"
#include "client/cli/option.h"
#include "client/client.h"
#include "kernels/status.h"
#include "kernels/types.h"
#include "proto/process.h"

namespace {

using prefixd::cli::AddNamed;
using prefixd::cli::AddNamedList;
using prefixd::cli::AddNumber;
using prefixd::cli::AddParsed;
using prefixd::cli::ArrayFlags;
using prefixd::cli::BenchFlags;
using prefixd::cli::Format;
using prefixd::cli::GlobalFlags;
using prefixd::cli::HasAll;
using prefixd::cli::kNotEmpty;
using prefixd::cli::LoadFlags;
using prefixd::cli::NamesOf;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

std::string DTypeNames() {
  return NamesOf<prefixd::DType>(prefixd::kNumDTypes, [](prefixd::DType dtype) { return prefixd::IsSupported(dtype); });
}

prefixd::Algorithm ParseAlgorithm(const std::string& flag, std::string_view name) {
  prefixd::Algorithm algorithm;
  if (FromName(name, &algorithm)) return algorithm;
  throw CLI::ValidationError(
      flag, prefixd::StrCat("'", name, "' is the name of no algorithm: expected one such as chained, ",
                            "three_phase/kogge_stone or three_phase/brent_kung/4/padded (prefixctl algorithms)"));
}

void AddArrayFlags(CLI::App* app, ArrayFlags* flags) {
  AddNamed<prefixd::DType>(app, "--type", DTypeNames(),
                           "Element type; .npy brings its own, text is f64 without it, raw bytes need it",
                           &flags->dtype);
  const auto set_algorithm = [flags](const std::string& name) {
    flags->algorithm = ParseAlgorithm("--algorithm", name);
  };
  app->add_option_function<std::string>("--algorithm", set_algorithm,
                                        "Such as three_phase/brent_kung/4/padded; prefixctl algorithms lists them all")
      ->type_name("NAME");
  const auto set_format = [flags](const std::string& name) {
    flags->format = name == "npy" ? Format::kNpy : name == "text" ? Format::kText : Format::kRaw;
  };
  app->add_option_function<std::string>("--format", set_format,
                                        "Format of INPUT, and of OUTPUT unless its name says it")
      ->check(CLI::IsMember({"npy", "text", "raw"}));
  app->add_option("INPUT", flags->input, "File, or - for standard input")->required()->check(kNotEmpty);
}

bool IsOfferedOp(prefixd::Op op) { return op != prefixd::Op::kLinearRecurrence; }

void AddOperator(CLI::App* app, ArrayFlags* flags) {
  AddNamed<prefixd::Op>(app, "--op", NamesOf<prefixd::Op>(prefixd::kNumOps, IsOfferedOp), "Operator (default sum)",
                        &flags->op);
  app->add_option("--init", flags->init, "Value in front of the first element");
  AddNamed<prefixd::DType>(app, "--out-type", DTypeNames(),
                           "Type of the result, in which elements are combined: theirs (default) or a wider one",
                           &flags->out_dtype);
}

void AddOutput(CLI::App* app, ArrayFlags* flags) {
  app->add_option("OUTPUT", flags->output, "File, or - for standard output (default)")->check(kNotEmpty);
}

void AddBenchFlags(CLI::App* app, BenchFlags* flags) {
  const auto any = [](auto) { return true; };
  AddNamedList(app, "PRIMITIVES", NamesOf<prefixd::Primitive>(prefixd::kNumPrimitives, any),
               "What to measure, separated by commas (default all of these)", HasAll::kNo, &flags->primitives);
  AddNamedList(app, "--types", DTypeNames(), "Element types (default f32)", HasAll::kYes, &flags->dtypes);
  AddNamedList(app, "--ops", NamesOf<prefixd::Op>(prefixd::kNumOps, IsOfferedOp),
               "Operators of scan and reduce (default sum)", HasAll::kYes, &flags->ops);
  const auto set_algorithms = [flags](const std::string& list) {
    flags->algorithms.clear();
    for (const absl::string_view name : absl::StrSplit(list, ',')) {
      if (name == "all") {
        flags->algorithms.clear();
        return;
      }
      flags->algorithms.push_back(ParseAlgorithm("--algorithms", {name.data(), name.size()}));
    }
  };
  app->add_option_function<std::string>(
         "--algorithms", set_algorithms,
         "Algorithms, or all that prefixctl algorithms lists, with each of their knobs (default: the server's choice)")
      ->type_name("NAMES");
  const auto set_sizes = [flags](const std::string& text) {
    auto sizes = prefixd::cli::ParseSizes(text);
    if (!sizes.ok()) throw CLI::ValidationError("--sizes", std::string(sizes.status().message()));
    flags->sizes = *std::move(sizes);
  };
  app->add_option_function<std::string>("--sizes", set_sizes,
                                        "Elements of the arrays: 1000, 2^20, or A..B for A, 4A, 16A and so on to B")
      ->type_name("SIZES")
      ->default_str("2^10..2^26")
      ->force_callback();
  app->add_option("--repetitions", flags->repetitions, "Samples of each, 1 to 1000")
      ->check(CLI::Range(1, 1000))
      ->type_name("COUNT")
      ->capture_default_str();
  app->add_flag("--csv", flags->csv, "Print CSV, with times in nanoseconds");
  app->add_option("--plot", flags->plot, "SVG file for a plot: GB/s over the number of elements")
      ->type_name("FILE")
      ->check(kNotEmpty);
  app->footer(
      "Times are medians by the device's clock, each sample from cold caches. GB/s (10^9 bytes a second) counts bytes\n"
      "read and written; share is that of the device's own copy of as many bytes. Ctrl-C keeps what came so far.\n");
}

void AddLoadFlags(CLI::App* app, LoadFlags* flags) {
  using prefixd::cli::ParseCounts;
  AddParsed(
      app, "--callers", [](auto& text) { return ParseCounts(text, prefixd::cli::kMaxCallers); },
      "Requests under way at once, a load for each number (default 1,4,16); with --rate-per-second, at most (64)",
      &flags->callers)
      ->type_name("COUNTS");
  AddParsed(
      app, "--rate-per-second", [](auto& text) { return ParseCounts(text, prefixd::cli::kMaxRatePerSecond); },
      "Requests that arrive a second, whether or not earlier ones have ended, a load for each number",
      &flags->rates_per_second)
      ->type_name("RATES");
  AddParsed(app, "--mix", prefixd::cli::ParseMix, "What is asked for, as PRIMITIVE:TYPE:SIZE=WEIGHT, by commas",
            &flags->mix)
      ->type_name("OPERATIONS")
      ->default_str("scan:f32:1024");
  app->add_option("--channels", flags->channels, "Connections, which callers share, 1 to 64")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT")
      ->capture_default_str();
  AddNumber(app, "--warmup-seconds", 0.0, 600.0, "Time at each load before it is measured, 0 to 600",
            &flags->warmup_seconds)
      ->type_name("TIME")
      ->default_str(prefixd::StrCat(flags->warmup_seconds));
  AddNumber(app, "--seconds", 0.1, 3600.0, "Time that each load is measured, in three windows, 0.1 to 3600",
            &flags->seconds)
      ->type_name("TIME")
      ->default_str(prefixd::StrCat(flags->seconds));
  app->add_flag("--stable", flags->stable,
                "Measure on until the last three windows agree within 10 %, ten windows at most");
  AddNumber(app, "--seed", uint64_t{0}, std::numeric_limits<uint64_t>::max(),
            "Repeats the order of a mix's requests (default: a random one, printed)", &flags->seed)
      ->type_name("NUMBER");
  app->add_flag("--csv", flags->csv, "Print CSV, with times in nanoseconds");
  app->add_option("--plot", flags->plot, "SVG file for a plot: latency over load")->type_name("FILE")->check(kNotEmpty);
}

absl::Duration ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  if (text == "none" || text == "0") return absl::InfiniteDuration();
  if (!absl::ParseDuration(text, &timeout) || timeout < absl::ZeroDuration()) {
    throw CLI::ValidationError("--timeout", "'" + text + "' is no duration such as 30s, 1.5m or none");
  }
  return timeout == absl::ZeroDuration() ? absl::InfiniteDuration() : timeout;
}

// What there is to say beside gRPC's message where no server has spoken.
std::string ConnectionError(const std::string& server, const std::string& message) {
  const auto says = [&](std::string_view what) { return message.find(what) != std::string::npos; };
  if (!says("failed to connect") && !says("resolution failed")) {
    return prefixd::StrCat("the connection to prefixd at ", server, " was lost (", message, ")");
  }
  std::string error = prefixd::StrCat("no prefixd answers at ", server, " (", message, ")");
  // Something else that answers there would be in its way.
  if (says("refused") || says("No such file")) error += prefixd::StrCat("\nStart one with: prefixd --listen ", server);
  return error;
}

// Says what went wrong; returns the exit code.
int ReportError(const std::string& command, const GlobalFlags& global, std::optional<absl::Duration> timeout,
                const absl::Status& status) {
  if (prefixd::cli::IsClosedPipe(status)) return kFailed;  // Whoever closed it knows.
  std::string message(status.message());
  if (prefixd::cli::IsUsageError(status)) {
    std::cerr << "prefixctl: " << command << ": " << message << "\nRun prefixctl " << command
              << " --help for more information.\n";
    return kWrongUsage;
  }
  const std::string reason = prefixd::ErrorReason(status);
  const bool of_call = prefixd::client::IsCallStatus(status);
  const bool too_late = absl::IsDeadlineExceeded(status);
  if (of_call && absl::IsUnavailable(status) && reason.empty()) message = ConnectionError(global.server, message);
  if (too_late && timeout) message += prefixd::StrCat(" (--timeout ", absl::FormatDuration(*timeout), ")");
  // A code for what is wrong with a file would look as if the server had said it.
  std::string code;
  if (of_call || too_late) code = absl::StatusCodeToString(status.code());
  if (of_call && !reason.empty()) code += " (" + reason + ")";
  std::cerr << "prefixctl: " << command << ": " << code << (code.empty() ? "" : ": ") << message << '\n';
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  prefixd::TuneProcess();
  prefixd::cli::OpenStandardStreams();
  signal(SIGPIPE, SIG_IGN);  // A closed pipe is an error of the write: temporary files go away as after any other.
  prefixd::cli::RemoveTemporaryFilesOnSignal();

  CLI::App app("Scan, reduce and compact arrays on a prefixd server.", "prefixctl");
  app.set_version_flag("--version", "prefixctl " PREFIXD_VERSION);
  app.require_subcommand(0, 1);  // That there is none is found below, with better words.
  app.fallthrough();
  app.footer(
      "Files: *.npy is NumPy's format (one dimension); *.txt, *.csv and - are text with one number a line; anything\n"
      "else is raw little-endian elements, which need --type. OUTPUT is replaced only once it is complete.\n"
      "Exit codes: 0 done, 1 the call or a file failed, 2 wrong usage.\n");
  GlobalFlags global;
  app.add_option("--server", global.server, "Address: HOST:PORT or unix:PATH")
      ->check(kNotEmpty)
      ->envname("PREFIXD_SERVER")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--timeout", [&](const std::string& text) { global.timeout = ParseTimeout(text); },
         "Such as 30s; 0 or none for no limit (default: none, but 5s for algorithms, info and health, 10s for load's "
         "requests)")
      ->type_name("DURATION");
  app.add_flag("--json", global.json, "Print one JSON object on standard output");

  prefixd::cli::ScanFlags scan_flags;
  CLI::App* scan = app.add_subcommand("scan", "Prefix sums and their like: each element with all before it");
  AddOperator(scan, &scan_flags);
  AddNamed<prefixd::ScanKind>(scan, "--kind", "inclusive, exclusive",
                              "Whether an element counts in its own result (default inclusive)", &scan_flags.kind);
  scan->add_flag("--reverse", scan_flags.reverse,
                 "From the last element to the first; arrays and results of up to 1 MiB");
  AddArrayFlags(scan, &scan_flags);
  AddOutput(scan, &scan_flags);

  ArrayFlags reduce_flags;
  CLI::App* reduce = app.add_subcommand("reduce", "One value of all elements");
  AddOperator(reduce, &reduce_flags);
  AddArrayFlags(reduce, &reduce_flags);

  prefixd::cli::CompactFlags compact_flags;
  CLI::App* compact = app.add_subcommand("compact", "The elements that a predicate or a mask selects");
  CLI::Option_group* selector = compact->add_option_group("Selector", "Exactly one of");
  selector->add_option("--where", compact_flags.where, "Such as '> 0', '!= 3', is-nan, is-finite");
  selector->add_option("--mask", compact_flags.mask, "File of bool or u8 (.npy), of bytes, or of 0 and 1 (text)")
      ->check(kNotEmpty);
  selector->require_option(1);
  compact->add_flag("--invert", compact_flags.invert, "Keep the others");
  compact->add_option("--indices", compact_flags.indices, "File for the indices of the kept elements, as u64")
      ->check(kNotEmpty);
  AddArrayFlags(compact, &compact_flags);
  AddOutput(compact, &compact_flags);

  prefixd::cli::BenchFlags bench_flags;
  CLI::App* bench = app.add_subcommand("bench", "How fast the server's device is, beside its own copy");
  AddBenchFlags(bench, &bench_flags);

  LoadFlags load_flags;
  CLI::App* load = app.add_subcommand("load", "How the server answers many callers: rates, latencies, errors");
  AddLoadFlags(load, &load_flags);
  load->footer(
      "Scans and reduces are sums, a compact keeps half; arrays above 1 MiB are streamed. With --callers each caller\n"
      "asks again when it was answered; with --rate-per-second requests arrive at times fixed before, and wait where\n"
      "no caller is free, which counts. stable: rate and p50 of the last three windows agree within 10 %, and what\n"
      "ended and what arrived. unsent: still waiting at the end. Percentiles are of what succeeded, and of what was\n"
      "unsent, timed out or was interrupted with its wait so far. --timeout is a request's (10s). Ctrl-C keeps what\n"
      "came.\n");
  LoadFlags wire_flags;
  CLI::App* wire = app.add_subcommand("wire", "The same requests, sent back unread: what the wire alone takes");
  AddLoadFlags(wire, &wire_flags);
  wire->footer(
      "The server sends each message back without looking at it, whatever the operation: of a scan the reply has that\n"
      "size, of a reduce and a compact it would be smaller. Where load is not much slower than wire, the wire is the\n"
      "limit; where it is, the work. Flags and columns are those of prefixctl load.\n");

  CLI::App* algorithms = app.add_subcommand("algorithms", "What the server's device can run, and what each costs");
  algorithms->footer(
      "Costs are for n elements: work in operations, depth in the longest chain of them, traffic in elements read and\n"
      "written. [/N]: items per thread, 1 to 16, may follow; [/padded]: so may that. limit: the longest array.\n");
  CLI::App* info = app.add_subcommand("info", "What the server is, serves and is doing");
  CLI::App* health = app.add_subcommand("health", "Whether the server serves: exit code 0 if it does");

  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty())
      throw CLI::RequiredError("A command (scan, reduce, compact, bench, load, wire, algorithms, info or health)");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto commands = app.get_subcommands();
    std::string message = error.what();
    std::string command = "prefixctl";
    if (!commands.empty()) {
      command += " " + commands.front()->get_name();
    } else if (!app.remaining().empty() && !app.remaining().front().starts_with('-')) {
      message = "there is no command '" + app.remaining().front() + "'";
    }
    std::cerr << "prefixctl: " << message << "\nRun " << command << " --help for more information.\n";
    return kWrongUsage;
  }

  absl::Status status;
  if (scan->parsed()) status = RunScan(global, scan_flags);
  if (reduce->parsed()) status = RunReduce(global, reduce_flags);
  if (compact->parsed()) status = RunCompact(global, compact_flags);
  if (bench->parsed()) status = RunBench(global, bench_flags);
  if (load->parsed()) status = RunLoads(global, prefixd::load::Target::kDevice, load_flags);
  if (wire->parsed()) status = RunLoads(global, prefixd::load::Target::kEcho, wire_flags);
  if (algorithms->parsed()) status = RunAlgorithms(global);
  if (info->parsed()) status = RunInfo(global);
  if (health->parsed()) status = RunHealth(global);
  if (status.ok()) return 0;
  std::optional<absl::Duration> timeout = global.timeout;
  if (!timeout && (algorithms->parsed() || info->parsed() || health->parsed())) timeout = prefixd::cli::kStatusTimeout;
  if (!timeout && (load->parsed() || wire->parsed())) timeout = prefixd::cli::kRequestTimeout;
  return ReportError(app.get_subcommands().front()->get_name(), global, timeout, status);
}
