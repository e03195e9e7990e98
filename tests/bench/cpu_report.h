// What cpu_bench prints and writes: tables, and CSV with a line for every row.
#ifndef PREFIXD_TESTS_BENCH_CPU_REPORT_H_
#define PREFIXD_TESTS_BENCH_CPU_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/cpu_suite.h"

namespace prefixd::bench {

inline constexpr char kNumpy[] = "numpy";

// What cpu_peers.py measured: a line of its CSV.
struct PeerFigure {
  std::string what;
  std::string who;
  int threads = 1;
  uint64_t num_items = 0;
  double ms = 0;
  double min_ms = 0;
  double max_ms = 0;
};

// Ends the process with a message if the file can't be read, or a line is none of cpu_peers.py's.
std::vector<PeerFigure> ReadPeers(const std::string& path);

// One row with all that follows from the others.
struct Line {
  std::string what;
  std::string who;
  int threads = 1;
  double bytes = 0;
  double ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  double share = 0;      // The rate, over that of the best copy as long, with up to as many threads. 0: unknown.
  double over_loop = 0;  // How many times as fast. 0: unknown.
  double over_std = 0;
  double over_tbb = 0;
  double over_numpy = 0;

  double GbPerSecond() const { return bytes / ms / 1e6; }
};

// The suite's rows, and those peers that have its number of items and one of its cases. Needs: the suite has measured.
std::vector<Line> LinesOf(const Suite& suite, const std::vector<PeerFigure>& peers);

void PrintTables(const std::vector<Line>& lines);

// Prints the rows in which prefixd is slower than the plain loop on one thread, the worst first, and how many there
// are.
void PrintSlower(const std::vector<Line>& lines);

// Appends; begins with a line of names if the file is empty. Ends the process with a message if it can't be written.
void AppendCsv(const std::string& path, uint64_t num_items, const std::vector<Line>& lines);

}  // namespace prefixd::bench

#endif  // PREFIXD_TESTS_BENCH_CPU_REPORT_H_
