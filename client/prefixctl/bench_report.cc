#include "client/prefixctl/bench_report.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace prefixd::cli {
namespace {

using client::BenchmarkResult;

// The names on the left, the numbers on the right.
constexpr std::array<std::string_view, 9> kTitles = {"primitive", "type", "op",   "algorithm", "elements",
                                                     "time, us",  "GB/s", "copy", "share"};
constexpr size_t kAlgorithm = 3;
constexpr size_t kNumNames = 4;

constexpr std::array<std::string_view, 18> kCsvColumns = {
    "primitive",     "type",      "op",          "algorithm", "num_items",        "num_bytes",
    "p10_ns",        "median_ns", "p90_ns",      "copy_ns",   "gb_per_s",         "copy_gb_per_s",
    "share_of_copy", "launches",  "repetitions", "device",    "numerics_version", "skipped"};

std::string_view OpName(const BenchmarkResult& result) { return result.op ? Name(*result.op) : ""; }

// Everything but the size.
auto Series(const BenchmarkResult& result) {
  return std::make_tuple(result.primitive, result.dtype, result.op, Name(result.algorithm));
}

// Powers of two as what they are, from where on they are hard to read.
std::string SizeText(uint64_t num_items) {
  if (num_items < 1024 || !std::has_single_bit(num_items)) return StrCat(num_items);
  return StrCat("2^", std::bit_width(num_items) - 1);
}

// The rate as a share of the copy's. Absent where a clock is too coarse.
std::optional<double> ShareOfCopy(const BenchmarkResult& result) {
  if (result.GbPerS() == 0 || result.CopyGbPerS() == 0) return std::nullopt;
  return result.GbPerS() / result.CopyGbPerS();
}

std::string TimeText(int64_t ns) { return NumberText(static_cast<double>(ns) / 1000); }
std::string RateText(double gb_per_s) { return gb_per_s == 0 ? "-" : NumberText(gb_per_s); }

std::string ShareText(const BenchmarkResult& result) {
  const std::optional<double> share = ShareOfCopy(result);
  return share ? absl::StrFormat("%.0f%%", *share * 100) : "-";
}

}  // namespace

// ---- The table -----------------------------------------------------------------------------------------------------
BenchTable::BenchTable(const client::BenchmarkSpec& spec, const client::ServerInfo& info)
    : device_(StrCat(info.device, ", prefixd ", info.version)),
      repetitions_(spec.repetitions),
      several_sizes_(spec.num_items.size() > 1),
      // The numbers' widths: of 9999999, 12345, 12345, 100%.
      widths_({0, 0, 0, 0, 0, 7, 5, 5, 5}) {
  const auto widen = [&](size_t column, std::string_view text) {
    widths_[column] = std::max(widths_[column], text.size());
  };
  for (size_t i = 0; i < kTitles.size(); ++i) widen(i, kTitles[i]);
  for (const Primitive primitive : spec.primitives) widen(0, Name(primitive));
  for (const DType dtype : spec.dtypes) widen(1, Name(dtype));
  for (const Op op : spec.ops) widen(2, Name(op));
  for (const uint64_t num_items : spec.num_items) widen(4, SizeText(num_items));
  const std::vector<Algorithm> default_algorithm = {{}};
  for (const Algorithm& asked : spec.algorithms.empty() ? default_algorithm : spec.algorithms) {
    widen(kAlgorithm, Name(asked));
    // What may run for it: which, shows only later.
    for (const client::AlgorithmInfo& row : info.algorithms) {
      if (asked.strategy != Strategy::kDefault && asked.strategy != row.algorithm.strategy) continue;
      if (asked.tile_scan != TileScan::kDefault && asked.tile_scan != row.algorithm.tile_scan) continue;
      Algorithm runs = row.algorithm;
      runs.padding = asked.padding;
      runs.items_per_thread = row.has_items_per_thread ? std::max<uint8_t>(asked.items_per_thread, 1) : 0;
      widen(kAlgorithm, Name(runs));
    }
  }
}

std::string BenchTable::Line(const std::array<std::string, 9>& cells) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t pad = widths_[i] - std::min(widths_[i], cells[i].size());
    if (i >= kNumNames) line.append(pad, ' ');
    line += cells[i];
    if (i < kNumNames) line.append(pad, ' ');
    line += i + 1 < cells.size() ? "  " : "\n";
  }
  return line;
}

std::string BenchTable::Head() const {
  std::array<std::string, 9> titles;
  std::copy(kTitles.begin(), kTitles.end(), titles.begin());
  return StrCat(device_, ": median of ", repetitions_, " samples, each from cold caches, by the device's clock.\n",
                "GB/s: bytes read and written. Copy: the device's own copy of as many bytes, measured in between.\n\n",
                Line(titles));
}

std::string BenchTable::Row(const BenchmarkResult& result) {
  const bool same_series = last_ && Series(*last_) == Series(result);
  const bool said = same_series && !result.times && !last_->times && last_->skipped == result.skipped;
  const bool parts = several_sizes_ && last_ && !same_series;
  last_ = result;
  if (said) return "";
  std::array<std::string, 9> cells = {std::string(Name(result.primitive)), std::string(Name(result.dtype)),
                                      result.op ? std::string(Name(*result.op)) : "-", Name(result.algorithm),
                                      SizeText(result.num_items)};
  std::string row = parts ? "\n" : "";
  if (result.times) {
    cells[5] = TimeText(result.times->median_ns);
    cells[6] = RateText(result.GbPerS());
    cells[7] = RateText(result.CopyGbPerS());
    cells[8] = ShareText(result);
    return row + Line(cells);
  }
  row += Line(cells);
  row.erase(row.find_last_not_of(" \n") + 1);
  return row + "  skipped: " + result.skipped + "\n";
}

// ---- JSON and CSV --------------------------------------------------------------------------------------------------
Json ToJson(const BenchmarkResult& result) {
  Json json;
  json["primitive"] = Name(result.primitive);
  json["type"] = Name(result.dtype);
  if (result.op) json["op"] = OpName(result);
  json["algorithm"] = Name(result.algorithm);
  json["num_items"] = result.num_items;
  if (!result.times) {
    json["skipped"] = result.skipped;
    return json;
  }
  json["num_bytes"] = result.num_bytes;
  json["p10_ns"] = result.times->p10_ns;
  json["median_ns"] = result.times->median_ns;
  json["p90_ns"] = result.times->p90_ns;
  json["copy_ns"] = result.times->copy_ns;
  if (result.GbPerS() != 0) json["gb_per_s"] = result.GbPerS();
  if (result.CopyGbPerS() != 0) json["copy_gb_per_s"] = result.CopyGbPerS();
  if (const auto share = ShareOfCopy(result)) json["share_of_copy"] = *share;
  json["launches"] = result.launches;
  json["repetitions"] = result.repetitions;
  return json;
}

Json ToJson(const std::vector<BenchmarkResult>& results, const client::ServerInfo& info, absl::Time time) {
  Json json;
  json["device"] = info.device;
  json["version"] = info.version;
  json["numerics_version"] = info.numerics_version;
  json["time"] = absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
  json["measurements"] = Json::array();
  for (const BenchmarkResult& result : results) json["measurements"].push_back(ToJson(result));
  return json;
}

std::string CsvHead() {
  std::string head;
  for (const std::string_view column : kCsvColumns) head += StrCat(head.empty() ? "" : ",", column);
  return head + "\n";
}

std::string CsvRow(const BenchmarkResult& result) {
  Json json = ToJson(result);
  json["device"] = result.device;
  json["numerics_version"] = result.numerics_version;
  std::string row;
  for (const std::string_view column : kCsvColumns) {
    if (column != kCsvColumns.front()) row += ',';
    if (const auto cell = json.find(column); cell != json.end()) row += CsvCell(*cell);
  }
  return row + "\n";
}

// ---- The plot ------------------------------------------------------------------------------------------------------
namespace {

// A dozen curves lie on each other over the decades of GB/s, and apart as shares of the copy's rate for the same n.
void ShowShares(Plot* plot) {
  plot->notes.back() = "Share of the rate at which the device itself copies as many bytes, by its clock.";
  plot->y_label = "%";
  plot->y_scale = YScale::kLinear;
  for (PlotPanel& panel : plot->panels) {
    std::map<uint64_t, double> copy;
    for (const PlotPoint& point : panel.curves.back().points) copy[point.n] = point.y;
    for (PlotCurve& curve : panel.curves) {
      for (PlotPoint& point : curve.points) point.y *= 100 / copy.at(point.n);
    }
  }
}

// Whether a panel has many curves, and every point the copy's beside it.
bool IsCrowd(const Plot& plot) {
  size_t most_curves = 0;
  for (const PlotPanel& panel : plot.panels) {
    most_curves = std::max(most_curves, panel.curves.size());
    const PlotCurve& copy = panel.curves.back();
    if (!copy.yardstick) return false;
    for (const PlotCurve& curve : panel.curves) {
      for (const PlotPoint& point : curve.points) {
        if (std::none_of(copy.points.begin(), copy.points.end(), [&](auto& p) { return p.n == point.n; })) return false;
      }
    }
  }
  return most_curves >= kCrowd;
}

}  // namespace

Plot ToPlot(const std::vector<BenchmarkResult>& results, const client::ServerInfo& info, absl::Time time) {
  // What was measured, by panel, in the order in which it came.
  std::vector<std::vector<const BenchmarkResult*>> panels;
  for (const BenchmarkResult& result : results) {
    if (result.GbPerS() == 0) continue;
    const auto of_same = [&](const auto& panel) {
      return panel[0]->primitive == result.primitive && panel[0]->dtype == result.dtype;
    };
    auto panel = std::find_if(panels.begin(), panels.end(), of_same);
    if (panel == panels.end()) panel = panels.emplace(panels.end());
    panel->push_back(&result);
  }
  Plot plot;
  plot.title = StrCat("prefixd on ", info.device);
  plot.notes = {
      StrCat(absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone()), ", prefixd ", info.version, ", numerics version ",
             info.numerics_version, ". Median of ", panels[0][0]->repetitions, " samples, each from cold caches."),
      "GB/s: bytes read and written, by the device's clock. Copy: the device's own, of as many bytes."};
  plot.n_label = "n, elements";
  plot.y_label = "GB/s";
  plot.columns = 2;
  for (const auto& measured : panels) {
    std::set<std::string_view> ops;
    std::set<std::string> algorithms;
    for (const BenchmarkResult* result : measured) {
      ops.insert(OpName(*result));
      algorithms.insert(Name(result->algorithm));
    }
    // What all curves have in common is in the title, what tells them apart in their names.
    PlotPanel panel;
    panel.title = StrCat(Name(measured[0]->primitive), " ", Name(measured[0]->dtype));
    if (ops.size() == 1 && measured[0]->op) panel.title += StrCat(" ", *ops.begin());
    std::map<uint64_t, std::vector<double>> copies;
    for (const BenchmarkResult* result : measured) {
      const Algorithm& algorithm = result->algorithm;
      const std::string op = ops.size() > 1 ? StrCat(OpName(*result), " ") : "";
      std::string name = StrCat(op, Name(algorithm));
      if (ops.size() > 1 && algorithms.size() == 1) name = OpName(*result);
      auto curve = std::find_if(panel.curves.begin(), panel.curves.end(), [&](auto& c) { return c.name == name; });
      if (curve == panel.curves.end()) {
        curve = panel.curves.insert(curve, {.name = name,
                                            .family = StrCat(op, Name(algorithm.strategy)),
                                            .dash = static_cast<size_t>(algorithm.tile_scan),
                                            .hollow = algorithm.padding || algorithm.items_per_thread > 1});
      }
      curve->points.push_back(
          {result->num_items, result->GbPerS(),
           StrCat(name, ", ", SizeText(result->num_items), ": ", TimeText(result->times->median_ns), " us, ",
                  RateText(result->GbPerS()), " GB/s, ", ShareText(*result), " of the copy")});
      if (result->CopyGbPerS() > 0) copies[result->num_items].push_back(result->CopyGbPerS());
    }
    for (PlotCurve& curve : panel.curves) {
      std::stable_sort(curve.points.begin(), curve.points.end(), [](auto& a, auto& b) { return a.n < b.n; });
    }
    PlotCurve copy = {.name = "copy", .yardstick = true};
    for (auto& [num_items, rates] : copies) {
      const auto middle = rates.begin() + std::ssize(rates) / 2;
      std::nth_element(rates.begin(), middle, rates.end());
      copy.points.push_back({num_items, *middle});
    }
    if (!copy.points.empty()) panel.curves.push_back(std::move(copy));
    plot.panels.push_back(std::move(panel));
  }
  if (IsCrowd(plot)) ShowShares(&plot);
  return plot;
}

}  // namespace prefixd::cli
