#include "tests/bench/cpu_report.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace prefixd::bench {
namespace {

bool IsMemory(const std::string& what) { return what.starts_with("copy of") || what.starts_with("read of"); }

bool IsYardstick(const Row& row) { return row.what.starts_with("copy of") && row.who != kPrefixd; }

template <class T>
bool Parse(const std::string& text, T* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

Line LineOf(const Row& row) {
  return {.what = row.what,
          .who = row.who,
          .threads = row.threads,
          .bytes = row.bytes,
          .ms = row.MedianMs(),
          .min_ms = row.ms.front(),
          .max_ms = row.ms.back()};
}

// The best copies' rates, by length and by the threads that they may use.
using CopyRates = std::map<std::pair<uint64_t, int>, double>;

CopyRates RatesOf(const std::vector<Row>& rows) {
  CopyRates rates;
  for (const Row& row : rows) {
    if (!IsYardstick(row)) continue;
    for (const Row& with : rows) {  // Who has more threads may still use fewer.
      if (with.threads < row.threads) continue;
      double& rate = rates[{row.copy_bytes, with.threads}];
      rate = std::max(rate, row.GbPerSecond());
    }
  }
  return rates;
}

// A peer of as many threads; else of one.
double TimesAsFastAs(const std::vector<Line>& lines, const char* who, const Line& line) {
  double ms = 0;
  for (const Line& other : lines) {
    if (other.what != line.what || other.who != who) continue;
    if (other.threads == line.threads || (other.threads == 1 && ms == 0)) ms = other.ms;
  }
  return ms / line.ms;
}

std::string Times(double ratio) { return ratio == 0 ? "-" : absl::StrFormat("%.2f", ratio); }

std::string MemoryRow(const Line& line) {
  return absl::StrFormat("%-18s %-14s %7d %9.3f %7.1f %6s %9.3f .. %.3f\n", line.what, line.who, line.threads, line.ms,
                         line.GbPerSecond(), Times(line.share), line.min_ms, line.max_ms);
}

void PrintMemory(const std::vector<Line>& lines) {
  std::printf("%-18s %-14s %7s %9s %7s %6s %13s\n", "memory", "how", "threads", "ms", "GB/s", "share", "min .. max");
  for (const Line& line : lines) {
    if (IsMemory(line.what)) std::printf("%s", MemoryRow(line).c_str());
  }
}

void PrintOurs(const std::vector<Line>& lines, int threads) {
  const std::string title = absl::StrFormat("prefixd, %d thread%s", threads, threads == 1 ? "" : "s");
  std::printf("\n%-34s %9s %7s %6s %8s %8s %8s %8s %13s\n", title.c_str(), "ms", "GB/s", "share", "/loop", "/oneTBB",
              "/std par", "/numpy", "min .. max");
  for (const Line& line : lines) {
    if (line.who != kPrefixd || line.threads != threads || IsMemory(line.what)) continue;
    std::printf("%-34s %9.3f %7.1f %6s %8s %8s %8s %8s %9.3f .. %.3f\n", line.what.c_str(), line.ms, line.GbPerSecond(),
                Times(line.share).c_str(), Times(line.over_loop).c_str(), Times(line.over_tbb).c_str(),
                Times(line.over_std).c_str(), Times(line.over_numpy).c_str(), line.min_ms, line.max_ms);
  }
}

void PrintPeers(const std::vector<Line>& lines) {
  std::printf("\n%-34s %-14s %7s %9s %7s %6s %13s\n", "peers", "who", "threads", "ms", "GB/s", "share", "min .. max");
  for (const Line& line : lines) {
    if (line.who == kPrefixd || IsMemory(line.what)) continue;
    std::printf("%-34s %-14s %7d %9.3f %7.1f %6s %9.3f .. %.3f\n", line.what.c_str(), line.who.c_str(), line.threads,
                line.ms, line.GbPerSecond(), Times(line.share).c_str(), line.min_ms, line.max_ms);
  }
}

}  // namespace

std::vector<PeerFigure> ReadPeers(const std::string& path) {
  std::ifstream file(path);
  if (!file) Fail("can't read " + path);
  std::vector<PeerFigure> figures;
  std::string text;
  std::getline(file, text);  // The names.
  while (std::getline(file, text)) {
    const std::vector<std::string> fields = absl::StrSplit(text, ',');
    PeerFigure figure;
    if (fields.size() != 7 || !Parse(fields[2], &figure.threads) || !Parse(fields[3], &figure.num_items) ||
        !Parse(fields[4], &figure.ms) || !Parse(fields[5], &figure.min_ms) || !Parse(fields[6], &figure.max_ms)) {
      Fail(path + " has a line that is not of cpu_peers.py: " + text);
    }
    figure.what = fields[0];
    figure.who = fields[1];
    figures.push_back(figure);
  }
  return figures;
}

std::vector<Line> LinesOf(const Suite& suite, const std::vector<PeerFigure>& peers) {
  const CopyRates rates = RatesOf(suite.rows());
  std::vector<Line> lines;
  std::set<std::string> done;
  for (const Row& row : suite.rows()) {
    const auto add = [&](Line line) {
      const auto rate = rates.find({row.copy_bytes, line.threads});
      if (rate != rates.end()) line.share = line.GbPerSecond() / rate->second;
      lines.push_back(std::move(line));
    };
    add(LineOf(row));
    if (row.who != kPrefixd || IsMemory(row.what) || !done.insert(row.what).second) continue;
    for (const PeerFigure& peer : peers) {
      if (peer.what != row.what || peer.num_items != suite.data().num_items) continue;
      add({.what = peer.what,
           .who = peer.who,
           .threads = peer.threads,
           .bytes = row.bytes,
           .ms = peer.ms,
           .min_ms = peer.min_ms,
           .max_ms = peer.max_ms});
    }
  }
  for (Line& line : lines) {
    if (IsMemory(line.what)) continue;
    line.over_loop = TimesAsFastAs(lines, kLoop, line);
    line.over_std = TimesAsFastAs(lines, kStdPar, line);
    line.over_tbb = TimesAsFastAs(lines, kTbb, line);
    line.over_numpy = TimesAsFastAs(lines, kNumpy, line);
  }
  return lines;
}

void PrintTables(const std::vector<Line>& lines) {
  PrintMemory(lines);
  std::set<int, std::greater<>> thread_counts;
  for (const Line& line : lines) {
    if (line.who == kPrefixd) thread_counts.insert(line.threads);
  }
  for (const int threads : thread_counts) PrintOurs(lines, threads);
  PrintPeers(lines);
  std::fflush(stdout);
}

void PrintSlower(const std::vector<Line>& lines) {
  std::vector<Line> slower;
  size_t num_rows = 0;
  for (const Line& line : lines) {
    if (line.over_loop == 0 || line.who != kPrefixd) continue;
    ++num_rows;
    if (line.over_loop < 1) slower.push_back(line);
  }
  std::ranges::sort(slower, {}, &Line::over_loop);
  for (const Line& line : slower) {
    std::printf("%-40s %7d thread%s %9.3f ms %8.2f times the loop's rate\n", line.what.c_str(), line.threads,
                line.threads == 1 ? " " : "s", line.ms, line.over_loop);
  }
  std::printf("%zu of %zu rows are slower than the loop\n", slower.size(), num_rows);
  std::fflush(stdout);
}

void AppendCsv(const std::string& path, uint64_t num_items, const std::vector<Line>& lines) {
  std::ofstream file(path, std::ios::app);
  if (file && file.tellp() == 0) {
    file << "case,who,threads,items,bytes,ms,min_ms,max_ms,gb_per_second,share,over_loop,over_onetbb,over_std_par,"
            "over_numpy\n";
  }
  const auto figure = [](double value) { return value == 0 ? "" : absl::StrFormat("%.6g", value); };
  for (const Line& line : lines) {
    file << absl::StrFormat("%s,%s,%d,%d,%.0f,%.6g,%.6g,%.6g,%.6g,%s,%s,%s,%s,%s\n", line.what, line.who, line.threads,
                            num_items, line.bytes, line.ms, line.min_ms, line.max_ms, line.GbPerSecond(),
                            figure(line.share), figure(line.over_loop), figure(line.over_tbb), figure(line.over_std),
                            figure(line.over_numpy));
  }
  file.flush();
  if (!file) Fail("can't write " + path);
}

}  // namespace prefixd::bench
