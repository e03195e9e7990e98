#include "client/prefixctl/bench_command.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"
#include "client/client.h"
#include "client/prefixctl/bench_report.h"
#include "client/prefixctl/file.h"
#include "client/prefixctl/interrupt.h"
#include "client/prefixctl/number.h"
#include "client/prefixctl/option.h"
#include "client/prefixctl/progress.h"
#include "client/prefixctl/report.h"

namespace prefixd::cli {
namespace {

template <class T>
bool Contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

template <class T>
void AddOnce(T value, std::vector<T>* values) {
  if (!Contains(*values, value)) values->push_back(value);
}

uint64_t CountOf(const client::BenchmarkSpec& spec) {
  uint64_t count = 0;
  for (const Primitive primitive : spec.primitives) {
    count += HasOp(primitive) ? std::max<size_t>(spec.ops.size(), 1) : 1;
  }
  return count * spec.dtypes.size() * std::max<size_t>(spec.algorithms.size(), 1) * spec.num_items.size();
}

// Where results go, one after the other, and what is left to be said at the end.
class Output {
 public:
  Output(const GlobalFlags& global, const BenchFlags& flags, const client::BenchmarkSpec& spec,
         const client::ServerInfo& info)
      : json_(global.json), csv_(flags.csv), info_(info), table_(spec, info) {}

  absl::Status Begin() { return Print(json_ ? "" : csv_ ? CsvHead() : table_.Head()); }

  absl::Status Add(const client::BenchmarkResult& result) {
    results_.push_back(result);
    return Print(json_ ? "" : csv_ ? CsvRow(result) : table_.Row(result));
  }

  absl::Status End(OutputFile* plot) {
    const absl::Time now = absl::Now();
    if (json_) PREFIXD_RETURN_IF_ERROR(PrintJson(ToJson(results_, info_, now)));
    if (plot == nullptr || !measured()) return absl::OkStatus();
    PREFIXD_RETURN_IF_ERROR(plot->Write(ToSvg(ToPlot(results_, info_, now))));
    PREFIXD_RETURN_IF_ERROR(plot->Close());
    return plot->Commit();
  }

  bool measured() const {
    return std::any_of(results_.begin(), results_.end(), [](const auto& result) { return result.GbPerS() > 0; });
  }

 private:
  static absl::Status Print(const std::string& text) { return text.empty() ? absl::OkStatus() : PrintText(text); }

  const bool json_;
  const bool csv_;
  const client::ServerInfo& info_;
  BenchTable table_;
  std::vector<client::BenchmarkResult> results_;
};

}  // namespace

std::vector<Primitive> AllPrimitives() {
  std::vector<Primitive> all;
  all.reserve(kNumPrimitives);
  for (int i = 0; i < kNumPrimitives; ++i) all.push_back(static_cast<Primitive>(i));
  return all;
}

client::BenchmarkSpec BenchSpec(const BenchFlags& flags, const client::ServerInfo& info) {
  client::BenchmarkSpec spec = {.primitives = flags.primitives,
                                .dtypes = flags.dtypes,
                                .ops = flags.ops,
                                .algorithms = flags.algorithms,
                                .num_items = flags.sizes,
                                .repetitions = flags.repetitions,
                                .precision = flags.precision,
                                .return_indices = flags.indices};
  if (flags.axis.axis) spec.axis = Axis{static_cast<Axis::Along>(*flags.axis.axis), *flags.axis.row_items};
  for (const client::Capability& listed : info.capabilities) {
    if (!Contains(flags.primitives, listed.primitive)) continue;
    if (flags.dtypes.empty()) AddOnce(listed.dtype, &spec.dtypes);
    if (flags.ops.empty() && listed.op) AddOnce(*listed.op, &spec.ops);
  }
  for (const client::AlgorithmInfo& row : info.algorithms) {
    if (!flags.algorithms.empty() || !Contains(flags.primitives, row.primitive)) continue;
    for (const uint8_t items : {0, 4}) {
      for (const bool padding : {false, true}) {
        if ((items > 0 && !row.has_items_per_thread) || (padding && !row.has_padding)) continue;
        AddOnce({row.algorithm.strategy, row.algorithm.tile_scan, items, padding}, &spec.algorithms);
      }
    }
  }
  return spec;
}

bool IsUnasked(const client::BenchmarkResult& result, const BenchFlags& flags, const client::ServerInfo& info) {
  const bool all_dtypes = flags.dtypes.empty();
  const bool all_ops = flags.ops.empty();
  const bool all_algorithms = flags.algorithms.empty();
  if (result.times || (!all_dtypes && !all_ops && !all_algorithms)) return false;
  const Algorithm without_knobs = {result.algorithm.strategy, result.algorithm.tile_scan};
  return std::none_of(info.capabilities.begin(), info.capabilities.end(), [&](const client::Capability& listed) {
    return listed.primitive == result.primitive && listed.dtype == result.dtype &&
           (!(all_ops || all_algorithms) || listed.op == result.op) &&
           (!all_algorithms || listed.algorithm == without_knobs);
  });
}

namespace {

// Prints, on standard output, a table or CSV as it is measured, or at the end one JSON object; then writes the plot.
// What ends it early, SIGINT and SIGTERM among it, leaves what came until then, and is its error.
// Errors: FAILED_PRECONDITION if there was nothing but skipped combinations.
// Needs:  as CancelOnInterrupt.
absl::Status RunBench(const GlobalFlags& global, const BenchFlags& flags) {
  if (flags.csv && global.json) return UsageError("--csv and --json both need standard output for themselves");
  if (flags.plot == "-") return UsageError("--plot needs the name of a file: standard output is the table's");
  CancelOnInterrupt interrupt;
  const absl::Time deadline = absl::Now() + global.TimeLimit();
  const auto call = [&] {
    return client::CallOptions{.timeout = deadline - absl::Now(), .cancellation = &interrupt.cancellation()};
  };
  // Before the work: that it can't be written is better known now.
  std::unique_ptr<OutputFile> plot;
  if (flags.plot) {
    PREFIXD_ASSIGN_OR_RETURN(plot, OutputFile::Open(*flags.plot));
  }
  client::Client client = MakeClient(global);
  PREFIXD_ASSIGN_OR_RETURN(const client::ServerInfo info, client.GetServerInfo(call()));
  const client::BenchmarkSpec spec = BenchSpec(flags, info);
  Output output(global, flags, spec, info);
  Progress progress(ResultTo::kFile);  // Rows may share the screen with it: each wipes it first.
  const uint64_t total = CountOf(spec);
  uint64_t done = 0;
  const auto show = [&](const client::BenchmarkResult& result) {
    progress.Wipe();
    if (done == 0) PREFIXD_RETURN_IF_ERROR(output.Begin());
    if (!IsUnasked(result, flags, info)) PREFIXD_RETURN_IF_ERROR(output.Add(result));
    if (++done < total) progress.Show(StrCat("measured ", done, " of ", total));
    return absl::OkStatus();
  };
  progress.Show(StrCat("measured 0 of ", total));
  absl::Status status = client.RunBenchmark(spec, show, call());
  progress.Wipe();
  if (interrupt.cancellation().cancelled() && !status.ok()) {
    status = absl::CancelledError(StrCat("interrupted when ", done, " of ", total, " were measured"));
  }
  if (done > 0 && !IsClosedPipe(status)) status.Update(output.End(plot.get()));
  if (status.ok() && !output.measured()) {
    return absl::FailedPreconditionError("nothing was measured: the server skipped all that it was asked for");
  }
  return status;
}

}  // namespace

void AddBenchCommand(CLI::App& app, Commands* commands) {
  CLI::App* bench = app.add_subcommand("bench", "How fast the server's device is, beside its own copy");
  const auto flags = std::make_shared<BenchFlags>();
  AddNamedList(bench, "PRIMITIVES", NamesOf<Primitive>([](Primitive) { return true; }),
               "What to measure, separated by commas (default all of these)", HasAll::kNo, &flags->primitives);
  AddNamedList(bench, "--types", DTypeNames(), "Element types (default f32)", HasAll::kYes, &flags->dtypes);
  AddNamedList(bench, "--ops", OpNames(Primitive::kScan), "Operators of scan and reduce (default sum)", HasAll::kYes,
               &flags->ops);
  const auto set_algorithms = [flags = flags.get()](const std::string& list) {
    flags->algorithms.clear();
    for (const absl::string_view name : absl::StrSplit(list, ',')) {
      if (name == "all") {
        flags->algorithms.clear();
        return;
      }
      flags->algorithms.push_back(ParseAlgorithm("--algorithms", {name.data(), name.size()}));
    }
  };
  bench
      ->add_option_function<std::string>(
          "--algorithms", set_algorithms,
          "Algorithms, or all that prefixctl algorithms lists, with each of their knobs (default: the server's choice)")
      ->type_name("NAMES");
  AddParsed(bench, "--sizes", ParseSizes, "Elements of the arrays: 1000, 2^20, or A..B for A, 4A, 16A and so on to B",
            &flags->sizes)
      ->type_name("SIZES")
      ->default_str("2^10..2^26")
      ->force_callback();
  bench->add_option("--repetitions", flags->repetitions, "Samples of each, 1 to 1000")
      ->check(CLI::Range(1, 1000))
      ->type_name("COUNT")
      ->capture_default_str();
  CLI::Option* const axis = AddNumber<uint32_t>(
      bench, "--axis", 0, 1, "The arrays are matrices, and work goes down columns (0) or along rows (1)",
      &flags->axis.axis);
  CLI::Option* const row_items =
      AddNumber<uint64_t>(bench, "--row-items", 1, std::numeric_limits<uint64_t>::max(),
                          "With --axis: elements in a row, of which each size is a multiple", &flags->axis.row_items);
  axis->needs(row_items);
  row_items->needs(axis);
  AddNamed<Precision>(bench, "--precision", "native, wide", "In what sums are made, as in scan (default native)",
                      &flags->precision);
  bench->add_flag("--indices", flags->indices, "Scans by min and max that also say where each result stands");
  bench->add_flag("--csv", flags->csv, "Print CSV, with times in nanoseconds");
  bench->add_option("--plot", flags->plot, "SVG file for a plot: GB/s over the number of elements")
      ->type_name("FILE")
      ->check(kNotEmpty);
  bench->footer(
      "Times are medians by the device's clock, each sample from cold caches. GB/s (10^9 bytes a second) counts bytes\n"
      "read and written; share is that of the device's own copy of as many bytes. Ctrl-C keeps what came so far.\n");
  commands->push_back({bench, [flags](const GlobalFlags& global) { return RunBench(global, *flags); }});
}

}  // namespace prefixd::cli
