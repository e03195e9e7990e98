#include "client/prefixctl/load_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace prefixd::cli {
namespace {

using load::LoadResult;
using load::Stage;
using load::Tally;

struct Percentile {
  std::string_view title;
  const char* key;
  double share;
};
constexpr std::array<Percentile, 4> kPercentiles = {
    {{"p50", "p50", 0.5}, {"p90", "p90", 0.9}, {"p99", "p99", 0.99}, {"p99.9", "p999", 0.999}}};

struct StageName {
  Stage stage;
  std::string_view title;
  const char* key;
};
constexpr std::array<StageName, load::kNumStages> kStages = {{{Stage::kServer, "server", "total"},
                                                              {Stage::kQueue, "queue", "queue"},
                                                              {Stage::kHostCopy, "host copy", "host_copy"},
                                                              {Stage::kToDevice, "to device", "host_to_device"},
                                                              {Stage::kKernel, "kernel", "kernel"},
                                                              {Stage::kFromDevice, "from device", "device_to_host"}}};

constexpr std::string_view kAll = "all";

// A row's name, and what it is about.
struct Row {
  std::string operation;
  Tally tally;
};

std::vector<Row> RowsOf(const LoadSetup& setup, const LoadResult& result) {
  const std::vector<load::Operation>& operations = setup.mix.operations();
  std::vector<Row> rows;
  if (operations.size() > 1) rows.push_back({std::string(kAll), result.measured.All()});
  for (size_t i = 0; i < operations.size(); ++i) rows.push_back({Name(operations[i]), result.measured.tallies[i]});
  return rows;
}

uint64_t LoadOf(const LoadResult& result) { return result.load.rate_per_second.value_or(result.load.num_callers); }

double Seconds(const LoadResult& result) { return std::chrono::duration<double>(result.measured.duration).count(); }

double PerSecond(uint64_t count, const LoadResult& result) { return static_cast<double>(count) / Seconds(result); }

std::string TimeText(double ns) { return NumberText(ns / 1000); }

std::optional<double> MeanNs(const Tally& tally, Stage stage) {
  const load::StageMean& mean = tally.stages[static_cast<size_t>(stage)];
  if (mean.count == 0) return std::nullopt;
  return static_cast<double>(mean.sum_ns) / static_cast<double>(mean.count);
}

std::string SecondsText(absl::Duration duration) { return absl::StrFormat("%g s", absl::ToDoubleSeconds(duration)); }

// "closed loop, 2 channels, 3 s measured after 1 s, seed 42"
std::string Conditions(const LoadSetup& setup) {
  std::string text = setup.open_loop ? "open loop" : "closed loop";
  text += StrCat(", ", setup.num_channels, setup.num_channels == 1 ? " channel, " : " channels, ");
  text += StrCat(SecondsText(setup.plan.measure), " measured after ", SecondsText(setup.plan.warm_up));
  if (setup.plan.until_stable) text += " and until stable";
  return StrCat(text, ", seed ", setup.mix.seed());
}

std::string What(const LoadSetup& setup) {
  return setup.target == load::Target::kEcho
             ? StrCat("echo of prefixd ", setup.server.version, " beside ", setup.server.device)
             : StrCat(setup.server.device, ", prefixd ", setup.server.version);
}

}  // namespace

bool HasLatencies(const LoadResult& result) { return result.measured.All().latency.count() > 0; }

// ---- The table -----------------------------------------------------------------------------------------------------
LoadTable::LoadTable(const LoadSetup& setup) : setup_(setup) {
  const std::string load = setup.open_loop ? "arrivals/s" : "callers";
  titles_ = {load, "operation", "requests/s", "MB/s"};
  for (const Percentile& percentile : kPercentiles) titles_.emplace_back(percentile.title);
  titles_.insert(titles_.end(), {"max", "failed"});
  if (setup.open_loop) titles_.emplace_back("unsent");
  titles_.emplace_back("stable");
  stage_titles_ = {load, "operation", "client"};
  for (const StageName& stage : kStages) stage_titles_.emplace_back(stage.title);
  const auto widths = [&](const std::vector<std::string>& titles) {
    std::vector<size_t> widths(titles.size(), 7);  // As wide as 1234567 us.
    for (size_t i = 0; i < titles.size(); ++i) widths[i] = std::max(titles[i].size(), widths[i]);
    for (const load::Operation& operation : setup.mix.operations()) {
      widths[1] = std::max(widths[1], Name(operation).size());
    }
    return widths;
  };
  widths_ = widths(titles_);
  stage_widths_ = widths(stage_titles_);
}

// The operation on the left, the rest on the right.
std::string LoadTable::Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t pad = widths[i] - std::min(widths[i], cells[i].size());
    if (i != 1) line.append(pad, ' ');
    line += cells[i];
    if (i == 1) line.append(pad, ' ');
    line += i + 1 < cells.size() ? "  " : "\n";
  }
  return line;
}

std::string LoadTable::Head() const {
  return StrCat(What(setup_), ": ", Conditions(setup_), ".\nLatency in us, from ",
                setup_.open_loop ? "a request's arrival, with its wait for a free caller," : "sending",
                " to the end of its reply.\nMB/s: bytes of arrays, both ways.\n\n", Line(titles_, widths_));
}

std::string LoadTable::Rows(const LoadResult& result) const {
  std::string text;
  std::string load = StrCat(LoadOf(result));
  for (const Row& row : RowsOf(setup_, result)) {
    const Tally& tally = row.tally;
    std::vector<std::string> cells = {std::exchange(load, ""), row.operation,
                                      NumberText(PerSecond(tally.num_ok, result)),
                                      NumberText(PerSecond(tally.num_bytes, result) / 1e6)};
    const bool measured = tally.latency.count() > 0;
    for (const Percentile& percentile : kPercentiles) {
      const auto ns = static_cast<double>(tally.latency.Percentile(percentile.share));
      cells.push_back(measured ? TimeText(ns) : "-");
    }
    cells.push_back(measured ? TimeText(static_cast<double>(tally.latency.max_ns())) : "-");
    cells.push_back(StrCat(tally.num_failed));
    if (setup_.open_loop) cells.push_back(StrCat(tally.num_unsent));
    cells.emplace_back(text.empty() ? (result.stable ? "yes" : "no") : "");
    text += Line(cells, widths_);
    text.erase(text.find_last_not_of(" \n") + 1);
    text += '\n';
  }
  if (const uint64_t count = result.measured.All().num_interrupted; count > 0) {
    text += StrCat("  ", count, " interrupted, with their wait so far in the latencies\n");
  }
  for (const auto& [name, error] : result.measured.errors) {
    text += StrCat("  ", error.count, " failed: ", name, ": ", std::string(error.first.message()), "\n");
  }
  return text;
}

std::string LoadTable::Stages(const std::vector<LoadResult>& results) const {
  std::string text;
  for (const LoadResult& result : results) {
    std::string load = StrCat(LoadOf(result));
    for (const Row& row : RowsOf(setup_, result)) {
      if (!MeanNs(row.tally, Stage::kServer)) continue;
      std::vector<std::string> cells = {std::exchange(load, ""), row.operation, TimeText(row.tally.latency.MeanNs())};
      for (const StageName& stage : kStages) {
        const std::optional<double> mean = MeanNs(row.tally, stage.stage);
        cells.push_back(mean ? TimeText(*mean) : "-");
      }
      text += Line(cells, stage_widths_);
    }
  }
  if (text.empty()) return "";
  return StrCat(
      "\nMeans in us: the client's latency, the server's time for the request, and of that the stages, which may\n"
      "overlap. -: not measured.\n\n",
      Line(stage_titles_, stage_widths_), text);
}

// ---- JSON and CSV --------------------------------------------------------------------------------------------------
namespace {

Json ToJson(const Row& row, const LoadResult& result) {
  const Tally& tally = row.tally;
  Json json;
  json["operation"] = row.operation;
  json["requests"] = tally.num_ok;
  json["late"] = tally.num_late;
  json["failed"] = tally.num_failed;
  json["unsent"] = tally.num_unsent;
  json["interrupted"] = tally.num_interrupted;
  json["requests_per_second"] = PerSecond(tally.num_ok, result);
  json["bytes_per_second"] = PerSecond(tally.num_bytes, result);
  if (tally.latency.count() > 0) {
    json["mean_ns"] = tally.latency.MeanNs();
    for (const Percentile& percentile : kPercentiles) {
      json[StrCat(percentile.key, "_ns")] = tally.latency.Percentile(percentile.share);
    }
    json["max_ns"] = tally.latency.max_ns();
  }
  for (const StageName& stage : kStages) {
    if (const auto mean = MeanNs(tally, stage.stage)) json[StrCat("server_", stage.key, "_ns")] = *mean;
  }
  return json;
}

// What a load's rows share.
Json ConditionsToJson(const LoadResult& result) {
  Json json;
  if (result.load.rate_per_second) json["arrivals_per_second"] = *result.load.rate_per_second;
  json["callers"] = result.load.num_callers;
  json["seconds"] = Seconds(result);
  json["windows"] = result.num_windows;
  json["stable"] = result.stable;
  return json;
}

std::vector<std::string> CsvColumns() {
  std::vector<std::string> columns = {"target",
                                      "arrivals_per_second",
                                      "callers",
                                      "seconds",
                                      "windows",
                                      "stable",
                                      "operation",
                                      "requests",
                                      "late",
                                      "failed",
                                      "unsent",
                                      "interrupted",
                                      "requests_per_second",
                                      "bytes_per_second",
                                      "mean_ns"};
  for (const Percentile& percentile : kPercentiles) columns.push_back(StrCat(percentile.key, "_ns"));
  columns.emplace_back("max_ns");
  for (const StageName& stage : kStages) columns.push_back(StrCat("server_", stage.key, "_ns"));
  columns.insert(columns.end(), {"channels", "seed", "device"});
  return columns;
}

std::string_view TargetName(const LoadSetup& setup) { return setup.target == load::Target::kEcho ? "echo" : "device"; }

}  // namespace

Json ToJson(const LoadSetup& setup, const LoadResult& result) {
  Json json = ConditionsToJson(result);
  json["total"] = ToJson(Row{std::string(kAll), result.measured.All()}, result);
  json["operations"] = Json::array();
  for (size_t i = 0; i < result.measured.tallies.size(); ++i) {
    json["operations"].push_back(ToJson(Row{Name(setup.mix.operations()[i]), result.measured.tallies[i]}, result));
  }
  json["errors"] = Json::array();
  for (const auto& [name, error] : result.measured.errors) {
    json["errors"].push_back({{"code", name}, {"count", error.count}, {"first", std::string(error.first.message())}});
  }
  return json;
}

Json ToJson(const LoadSetup& setup, const std::vector<LoadResult>& results, absl::Time time) {
  Json json;
  json["target"] = TargetName(setup);
  json["device"] = setup.server.device;
  json["version"] = setup.server.version;
  json["time"] = absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
  json["channels"] = setup.num_channels;
  json["seed"] = setup.mix.seed();
  json["warmup_seconds"] = absl::ToDoubleSeconds(setup.plan.warm_up);
  json["mix"] = Json::array();
  for (const load::Operation& operation : setup.mix.operations()) {
    json["mix"].push_back({{"operation", Name(operation)}, {"weight", operation.weight}});
  }
  json["loads"] = Json::array();
  for (const LoadResult& result : results) json["loads"].push_back(ToJson(setup, result));
  return json;
}

std::string LoadCsvHead() {
  std::string head;
  for (const std::string& column : CsvColumns()) head += StrCat(head.empty() ? "" : ",", column);
  return head + "\n";
}

std::string LoadCsvRows(const LoadSetup& setup, const LoadResult& result) {
  std::string rows;
  for (const Row& row : RowsOf(setup, result)) {
    Json json = ToJson(row, result);
    json.update(ConditionsToJson(result));
    json["target"] = TargetName(setup);
    json["channels"] = setup.num_channels;
    json["seed"] = setup.mix.seed();
    json["device"] = setup.server.device;
    std::string line;
    for (const std::string& column : CsvColumns()) {
      if (column != "target") line += ',';
      if (const auto cell = json.find(column); cell != json.end()) line += CsvCell(*cell);
    }
    rows += line + "\n";
  }
  return rows;
}

// ---- The plot ------------------------------------------------------------------------------------------------------
Plot ToPlot(const LoadSetup& setup, const std::vector<LoadResult>& results, absl::Time time) {
  Plot plot;
  plot.title = StrCat("Latency over load: ", What(setup));
  plot.notes = {StrCat(absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone()), ", ", Conditions(setup), "."),
                setup.open_loop ? StrCat("Latency from a request's arrival, with ", results[0].load.num_callers,
                                         " callers to send it, to the end of its reply.")
                                : std::string("Latency from sending to the end of the reply.")};
  plot.n_label = setup.open_loop ? "arrivals a second" : "callers";
  plot.y_label = "us";
  plot.columns = 2;
  for (const LoadResult& result : results) {
    const std::vector<Row> rows = RowsOf(setup, result);
    for (const Row& row : rows) {
      if (row.tally.latency.count() == 0) continue;
      auto panel =
          std::find_if(plot.panels.begin(), plot.panels.end(), [&](auto& p) { return p.title == row.operation; });
      if (panel == plot.panels.end()) {
        panel = plot.panels.insert(panel, {.title = row.operation});
        for (const Percentile& percentile : kPercentiles) {
          panel->curves.push_back({.name = std::string(percentile.title)});
        }
      }
      for (size_t i = 0; i < kPercentiles.size(); ++i) {
        const double ns = std::max<double>(1, static_cast<double>(row.tally.latency.Percentile(kPercentiles[i].share)));
        panel->curves[i].points.push_back(
            {LoadOf(result), ns / 1000,
             StrCat(kPercentiles[i].title, ", ", LoadOf(result), " ", plot.n_label, ": ", TimeText(ns), " us, ",
                    NumberText(PerSecond(row.tally.num_ok, result)), " requests/s")});
      }
    }
  }
  for (PlotPanel& panel : plot.panels) {
    for (PlotCurve& curve : panel.curves) {
      std::stable_sort(curve.points.begin(), curve.points.end(), [](auto& a, auto& b) { return a.n < b.n; });
    }
  }
  return plot;
}

}  // namespace prefixd::cli
