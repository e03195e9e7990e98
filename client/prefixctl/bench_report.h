// Benchmark results as a table, as CSV, as JSON and as a plot.
#ifndef PREFIXD_CLIENT_PREFIXCTL_BENCH_REPORT_H_
#define PREFIXD_CLIENT_PREFIXCTL_BENCH_REPORT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/benchmark.h"
#include "client/client.h"
#include "client/prefixctl/report.h"
#include "client/prefixctl/svg_plot.h"

namespace prefixd::cli {

// An aligned table that grows by a row at a time:
//
//   cpu (2 threads, avx512), prefixd 0.1.0: median of 20 samples, each from cold caches, by the device's clock.
//   GB/s: bytes read and written. Copy: the device's own copy of as many bytes, measured in between.
//
//   primitive  type  op   algorithm      elements  time, us   GB/s   copy  share
//   scan       f32   sum  chained            2^20       493   17.0   40.2    42%
//
//   scan       f32   sum  cub                2^20  skipped: the cpu device has no algorithm cub
class BenchTable {
 public:
  // Columns are as wide as what was asked for, of the server that `info` tells of, may need.
  BenchTable(const client::BenchmarkSpec& spec, const client::ServerInfo& info);

  std::string Head() const;
  // With an empty line in front where curves of several sizes part. Empty where the same was skipped for the same
  // reason just before, but for its size.
  std::string Row(const client::BenchmarkResult& result);

 private:
  std::string Line(const std::array<std::string, 9>& cells) const;

  std::string device_;
  uint32_t repetitions_;
  bool several_sizes_;
  std::array<size_t, 9> widths_;
  std::optional<client::BenchmarkResult> last_;
};

// Keys without a value, such as the times of what was skipped, are absent; as CSV they are empty.
Json ToJson(const client::BenchmarkResult& result);
Json ToJson(const std::vector<client::BenchmarkResult>& results, const client::ServerInfo& info, absl::Time time);
// CSV is that of RFC 4180, but for line ends, which are those of the system.
std::string CsvHead();
std::string CsvRow(const client::BenchmarkResult& result);

// GB/s over n: a panel for each primitive and type, a curve for each operator and algorithm, and the copy dashed.
// A strategy has a colour, a tile scan its dashes, knobs hollow dots. Of kCrowd curves and more in a panel it is the
// share of the copy over n, which tells them apart.
// Needs: a result with a rate.
Plot ToPlot(const std::vector<client::BenchmarkResult>& results, const client::ServerInfo& info, absl::Time time);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_BENCH_REPORT_H_
