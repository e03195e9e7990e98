// What loads came to, as a table, as CSV, as JSON and as a plot.
#ifndef PREFIXD_CLIENT_PREFIXCTL_LOAD_REPORT_H_
#define PREFIXD_CLIENT_PREFIXCTL_LOAD_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/client.h"
#include "client/load/load.h"
#include "client/load/mix.h"
#include "client/load/server_sender.h"
#include "client/prefixctl/report.h"
#include "client/prefixctl/svg_plot.h"

namespace prefixd::cli {

// What all loads of a run share.
struct LoadSetup {
  load::Target target = load::Target::kDevice;
  load::Mix mix;
  load::Plan plan;
  size_t num_channels = 1;
  bool open_loop = false;
  client::ServerInfo server;
};

// An aligned table that grows by a load at a time; below it, where the server says so, where the time went:
//
//   callers  operation          requests/s   MB/s    p50    p90    p99  p99.9    max  failed  stable
//         4  all                      5210   1234    612    ...
//            scan:f32:2^10            4631    ...
//            reduce:f64:2^16           579    ...
class LoadTable {
 public:
  explicit LoadTable(const LoadSetup& setup);

  std::string Head() const;
  // A row for all operations, if there are several, and one for each; and a line for each kind of error.
  std::string Rows(const load::LoadResult& result) const;
  // The stages: empty if the server measured none.
  std::string Stages(const std::vector<load::LoadResult>& results) const;

 private:
  std::string Line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  const LoadSetup& setup_;
  std::vector<std::string> titles_;
  std::vector<std::string> stage_titles_;
  std::vector<size_t> widths_;
  std::vector<size_t> stage_widths_;
};

// Keys without a value, such as latencies where nothing succeeded, are absent; as CSV they are empty.
Json ToJson(const LoadSetup& setup, const load::LoadResult& result);
Json ToJson(const LoadSetup& setup, const std::vector<load::LoadResult>& results, absl::Time time);
std::string LoadCsvHead();
// As many rows as the table has, without those of errors.
std::string LoadCsvRows(const LoadSetup& setup, const load::LoadResult& result);

// Latency over load, which is callers or the rate of arrivals: a panel for all operations, if there are several, and
// one for each; a curve for each percentile.
// Needs: HasLatencies of one of them.
Plot ToPlot(const LoadSetup& setup, const std::vector<load::LoadResult>& results, absl::Time time);
bool HasLatencies(const load::LoadResult& result);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_LOAD_REPORT_H_
