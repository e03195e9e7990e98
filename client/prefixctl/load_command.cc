#include "client/prefixctl/load_command.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"
#include "client/client.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/interrupt.h"
#include "client/prefixctl/load_report.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"
#include "client/prefixctl/progress.h"
#include "client/prefixctl/report.h"

namespace prefixd::cli {
namespace {

// One request may take so long, unless --timeout says another; it also bounds how long a load takes to end.
constexpr absl::Duration kRequestTimeout = absl::Seconds(10);
constexpr uint64_t kMaxCallers = 1024;
constexpr uint64_t kMaxRatePerSecond = 100'000;
constexpr size_t kMaxLoads = 64;
constexpr size_t kMaxOperations = 32;
constexpr uint64_t kMaxWeight = 1'000'000;
constexpr uint64_t kMaxItems = uint64_t{1} << 40;  // A few hours of streaming.
constexpr size_t kOpenLoopCallers = 64;
const std::vector<uint64_t> kClosedLoopCallers = {1, 4, 16};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin <= text.size(); begin += words.back().size() + 1) {
    words.push_back(text.substr(begin, text.find(separator, begin) - begin));
  }
  return words;
}

// From 1 to most.
std::optional<uint64_t> ParseCountUpTo(std::string_view digits, uint64_t most) {
  const std::optional<uint64_t> count = cli::ParseCount(digits);
  return count && *count >= 1 && *count <= most ? count : std::nullopt;
}

std::optional<load::Operation> ParseOperation(std::string_view text) {
  load::Operation operation;
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    const auto weight = ParseCountUpTo(text.substr(equals + 1), kMaxWeight);
    if (!weight) return std::nullopt;
    operation.weight = static_cast<uint32_t>(*weight);
  }
  const std::vector<std::string_view> words = Split(text.substr(0, equals), ':');
  if (words.size() != 3 || !FromName(words[0], &operation.primitive) || !FromName(words[1], &operation.dtype)) {
    return std::nullopt;
  }
  const auto sizes = ParseSizes(words[2]);
  if (!sizes.ok() || sizes->size() != 1 || sizes->front() > kMaxItems) return std::nullopt;
  operation.num_items = sizes->front();
  return operation;
}

// Where results go, one after the other, and what is left to be said at the end.
class Output {
 public:
  Output(const GlobalFlags& global, const LoadFlags& flags, const LoadSetup& setup)
      : json_(global.json), csv_(flags.csv), setup_(setup), table_(setup) {}

  absl::Status Begin() { return Print(json_ ? "" : csv_ ? LoadCsvHead() : table_.Head()); }

  absl::Status Add(load::LoadResult result) {
    results_.push_back(std::move(result));
    return Print(json_ ? "" : csv_ ? LoadCsvRows(setup_, results_.back()) : table_.Rows(results_.back()));
  }

  absl::Status End(OutputFile* plot) {
    const absl::Time now = absl::Now();
    if (json_) PREFIXD_RETURN_IF_ERROR(PrintJson(ToJson(setup_, results_, now)));
    if (!json_ && !csv_) PREFIXD_RETURN_IF_ERROR(Print(table_.Stages(results_)));
    if (plot == nullptr || std::none_of(results_.begin(), results_.end(), HasLatencies)) return absl::OkStatus();
    PREFIXD_RETURN_IF_ERROR(plot->Write(ToSvg(ToPlot(setup_, results_, now))));
    PREFIXD_RETURN_IF_ERROR(plot->Close());
    return plot->Commit();
  }

 private:
  static absl::Status Print(const std::string& text) { return text.empty() ? absl::OkStatus() : PrintText(text); }

  const bool json_;
  const bool csv_;
  const LoadSetup& setup_;
  const LoadTable table_;
  std::vector<load::LoadResult> results_;
};

// The error that most requests of a load failed with.
absl::Status MainError(const load::LoadResult& result) {
  const auto& errors = result.measured.errors;
  const auto main =
      std::max_element(errors.begin(), errors.end(), [](auto& a, auto& b) { return a.second.count < b.second.count; });
  return main->second.first;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseCounts(std::string_view text, uint64_t most) {
  std::vector<uint64_t> counts;
  for (const std::string_view word : Split(text, ',')) {
    const std::optional<uint64_t> count = ParseCountUpTo(word, most);
    if (!count) {
      return absl::InvalidArgumentError(StrCat("'", Shown(word), "' is no number from 1 to ", most));
    }
    counts.push_back(*count);
  }
  if (counts.size() > kMaxLoads) return absl::InvalidArgumentError(StrCat("more than ", kMaxLoads, " numbers"));
  return counts;
}

absl::StatusOr<std::vector<load::Operation>> ParseMix(std::string_view text) {
  std::vector<load::Operation> mix;
  for (const std::string_view word : Split(text, ',')) {
    const std::optional<load::Operation> operation = ParseOperation(word);
    if (!operation) {
      return absl::InvalidArgumentError(StrCat("'", Shown(word),
                                               "' is no operation: expected one such as scan:f32:1024 or "
                                               "reduce:f64:2^16=8, whose weight is 8"));
    }
    mix.push_back(*operation);
  }
  if (mix.size() > kMaxOperations)
    return absl::InvalidArgumentError(StrCat("more than ", kMaxOperations, " operations"));
  return mix;
}

absl::StatusOr<std::vector<load::Load>> LoadsOf(const LoadFlags& flags) {
  std::vector<load::Load> loads;
  if (flags.rates_per_second.empty()) {
    for (const uint64_t callers : flags.callers.empty() ? kClosedLoopCallers : flags.callers) {
      loads.push_back({.num_callers = callers});
    }
    return loads;
  }
  if (flags.callers.size() > 1) {
    return UsageError("--rate-per-second takes one number of --callers: the most requests under way at once");
  }
  for (const uint64_t rate : flags.rates_per_second) {
    loads.push_back(
        {.rate_per_second = rate, .num_callers = flags.callers.empty() ? kOpenLoopCallers : flags.callers.front()});
  }
  return loads;
}

namespace {

// Prints, on standard output, a table or CSV as it is measured, or at the end one JSON object; then writes the plot.
// What ends it early, SIGINT and SIGTERM among it, leaves what came until then, and is its error.
// Errors: that of the requests, after its row, where those of a load fail and none succeeds.
// Needs:  as CancelOnInterrupt.
absl::Status RunLoads(const GlobalFlags& global, load::Target target, const LoadFlags& flags) {
  if (flags.csv && global.json) return UsageError("--csv and --json both need standard output for themselves");
  if (flags.plot == "-") return UsageError("--plot needs the name of a file: standard output is the table's");
  PREFIXD_ASSIGN_OR_RETURN(const std::vector<load::Load> loads, LoadsOf(flags));
  CancelOnInterrupt interrupt;
  client::Cancellation& cancellation = interrupt.cancellation();
  // Before the work: that it can't be written is better known now.
  std::unique_ptr<OutputFile> plot;
  if (flags.plot) {
    PREFIXD_ASSIGN_OR_RETURN(plot, OutputFile::Open(*flags.plot));
  }
  const absl::Duration timeout = global.TimeLimit();
  // --timeout is for the requests that are measured: as short a one as a user likes.
  absl::StatusOr<client::ServerInfo> info =
      MakeClient(global).GetServerInfo({.timeout = std::max(timeout, kRequestTimeout), .cancellation = &cancellation});
  if (cancellation.cancelled()) return absl::CancelledError("interrupted before the first load");
  if (!info.ok()) return info.status();
  const LoadSetup setup = {.target = target,
                           .mix = load::Mix(flags.mix, flags.seed ? *flags.seed : std::random_device()()),
                           .plan = {.warm_up = absl::Seconds(flags.warmup_seconds),
                                    .measure = absl::Seconds(flags.seconds),
                                    .until_stable = flags.stable},
                           .num_channels = flags.channels,
                           .open_loop = !flags.rates_per_second.empty(),
                           .server = *std::move(info)};
  load::ServerSender sender(global.servers, global.connection, flags.channels, target, flags.mix, timeout,
                            &cancellation);
  const load::Sender send = [&](size_t caller, size_t operation) { return sender.Send(caller, operation); };
  Output output(global, flags, setup);
  Progress progress(ResultTo::kFile);  // Rows may share the screen with it: each wipes it first.
  absl::Status status = output.Begin();
  size_t done = 0;
  while (done < loads.size() && status.ok()) {
    const auto show = [&](const std::string& what) {
      progress.Show(StrCat("load ", done + 1, " of ", loads.size(), ", ", what));
    };
    absl::StatusOr<load::LoadResult> result =
        load::RunLoad(setup.plan, loads[done], setup.mix, send, cancellation, show);
    progress.Wipe();
    if (!result.ok()) {
      status = result.status();
      break;
    }
    if (result->hopeless) status = MainError(*result);
    const bool interrupted = cancellation.cancelled();
    if (result->measured.duration > result->measured.duration.zero()) status.Update(output.Add(*std::move(result)));
    if (interrupted) {
      status = absl::CancelledError(StrCat("interrupted when ", done, " of ", loads.size(), " loads were measured"));
    } else {
      ++done;
    }
  }
  if (!IsClosedPipe(status)) status.Update(output.End(plot.get()));
  return status;
}

void AddLoadFlags(CLI::App* app, LoadFlags* flags) {
  AddParsed(
      app, "--callers", [](auto& text) { return ParseCounts(text, kMaxCallers); },
      "Requests under way at once, a load for each number (default 1,4,16); with --rate-per-second, at most (64)",
      &flags->callers)
      ->type_name("COUNTS");
  AddParsed(
      app, "--rate-per-second", [](auto& text) { return ParseCounts(text, kMaxRatePerSecond); },
      "Requests that arrive a second, whether or not earlier ones have ended, a load for each number",
      &flags->rates_per_second)
      ->type_name("RATES");
  AddParsed(app, "--mix", ParseMix, "What is asked for, as PRIMITIVE:TYPE:SIZE=WEIGHT, by commas", &flags->mix)
      ->type_name("OPERATIONS")
      ->default_str("scan:f32:1024");
  app->add_option("--channels", flags->channels, "Connections, which callers share, 1 to 64")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT")
      ->capture_default_str();
  AddNumber(app, "--warmup-seconds", 0.0, 600.0, "Time at each load before it is measured, 0 to 600",
            &flags->warmup_seconds)
      ->type_name("TIME")
      ->default_str(StrCat(flags->warmup_seconds));
  AddNumber(app, "--seconds", 0.1, 3600.0, "Time that each load is measured, in three windows, 0.1 to 3600",
            &flags->seconds)
      ->type_name("TIME")
      ->default_str(StrCat(flags->seconds));
  app->add_flag("--stable", flags->stable,
                "Measure on until the last three windows agree within 10 %, ten windows at most");
  AddNumber(app, "--seed", uint64_t{0}, std::numeric_limits<uint64_t>::max(),
            "Repeats the order of a mix's requests (default: a random one, printed)", &flags->seed)
      ->type_name("NUMBER");
  app->add_flag("--csv", flags->csv, "Print CSV, with times in nanoseconds");
  app->add_option("--plot", flags->plot, "SVG file for a plot: latency over load")->type_name("FILE")->check(kNotEmpty);
}

// One of the two commands, with all their flags.
void AddCommand(CLI::App* app, load::Target target, Commands* commands) {
  const auto flags = std::make_shared<LoadFlags>();
  AddLoadFlags(app, flags.get());
  commands->push_back(
      {app, [target, flags](const GlobalFlags& global) { return RunLoads(global, target, *flags); }, kRequestTimeout});
}

}  // namespace

void AddLoadCommands(CLI::App& app, Commands* commands) {
  CLI::App* load = app.add_subcommand("load", "How the server answers many callers: rates, latencies, errors");
  AddCommand(load, load::Target::kDevice, commands);
  load->footer(
      "Scans and reduces are sums, a compact keeps half; arrays above 1 MiB are streamed. With --callers each caller\n"
      "asks again when it was answered; with --rate-per-second requests arrive at times fixed before, and wait where\n"
      "no caller is free, which counts. stable: rate and p50 of the last three windows agree within 10 %, and what\n"
      "ended and what arrived. unsent: still waiting at the end. Percentiles are of what succeeded, and of what was\n"
      "unsent, timed out or was interrupted with its wait so far. --timeout is a request's (10s). Ctrl-C keeps what\n"
      "came.\n");
  CLI::App* wire = app.add_subcommand("wire", "The same requests, sent back unread: what the wire alone takes");
  AddCommand(wire, load::Target::kEcho, commands);
  wire->footer(
      "The server sends each message back without looking at it, whatever the operation: of a scan the reply has that\n"
      "size, of a reduce and a compact it would be smaller. Where load is not much slower than wire, the wire is the\n"
      "limit; where it is, the work. Flags and columns are those of prefixctl load.\n");
}

}  // namespace prefixd::cli
