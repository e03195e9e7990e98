// The CPU device beside its peers, in one process and in interleaved rounds.
//
//   cpu_bench [--filter REGEX] [--log2-items N,...] [--threads N] [--isa NAME] [--csv PATH] [--peers PATH]
//   cpu_bench --every-case --log2-items 12,14,16,18,20
//
// The peers: plain loops, std:: algorithms with and without a policy, oneTBB; and from cpu_peers.py, numpy and others.
// Each time is the median of the rounds; every sample has cold caches. GB/s counts the bytes that must move, read and
// written. "share" is that rate over the rate of the best copy of as many elements with up to as many threads: memcpy,
// memcpy in pieces, or stores that go past the caches. "/loop" and the like say how many times as fast prefixd is.
// --every-case asks another question, whether a caller ever loses by calling prefixd: its samples are of several calls.
//
// Before anything is timed, every result is compared bit for bit with the plain loop's.
#include <tbb/info.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/bench/cpu_report.h"
#include "tests/bench/cpu_suite.h"

namespace prefixd::bench {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return "unknown processor";
}

std::string ValidRegex(const std::string& text) {
  try {
    static_cast<void>(std::regex(text));
  } catch (const std::regex_error&) {
    return "not a regular expression: " + text;
  }
  return "";
}

void AddFlags(CLI::App& app, Options* options) {
  app.add_option("--log2-items", options->log2_items, "The arrays' lengths: powers of two, by their exponents")
      ->delimiter(',')
      ->check(CLI::Range(10, 28))
      ->capture_default_str();
  app.add_option("--rounds", options->rounds, "How often each row is timed; one round before is not counted")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--threads", options->threads, "Rows are measured with one thread and with so many")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "The seed of the data, which --peers must share")->capture_default_str();
  app.add_option("--isa", options->isa, "The instruction set: auto, sse2, avx2, avx512, neon")->capture_default_str();
  app.add_flag("--every-case", options->every_case,
               "Instead: every type, operator and kind beside the plain loop; prints where prefixd is slower");
  app.add_option("--filter", options->filter,
                 "Only cases whose name this regular expression finds, such as '^scan (f32|i32) sum$'")
      ->check(CLI::Validator(ValidRegex, "REGEX"));
  app.add_option("--csv", options->csv, "A file to write all rows to, as CSV");
  app.add_option("--peers", options->peers, "The CSV file of cpu_peers.py, whose figures are added")
      ->check(CLI::ExistingFile);
  app.add_flag("--smoke", options->smoke, "Only shows that everything runs: few items, one round, no flags needed");
}

void Measure(const Options& options, int log2_items, const std::vector<PeerFigure>& peers) {
  const uint64_t num_items = uint64_t{1} << log2_items;
  Suite suite(options, num_items);
  if (options.every_case) {
    AddEveryScan(suite);
    AddEveryReduce(suite);
    AddEveryCompact(suite);
    AddEveryDifference(suite);
  } else {
    AddScanCases(suite);
    AddReduceCases(suite);
    AddCompactCases(suite);
    AddDifferenceCases(suite);
  }
  if (suite.rows().empty()) Fail("--filter keeps no case");
  if (!options.every_case) suite.AddCopies();
  std::printf("# %s: %s, 2^%d items, median of %d rounds, seed %llu; all results are right\n", ProcessorName().c_str(),
              suite.DeviceName().c_str(), log2_items, options.rounds, static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  suite.Measure();
  const std::vector<Line> lines = LinesOf(suite, peers);
  options.every_case ? PrintSlower(lines) : PrintTables(lines);
  if (!options.csv.empty()) AppendCsv(options.csv, num_items, lines);
}

int Main(int argc, char** argv) {
  Options options;
  options.threads = tbb::info::default_concurrency();
  CLI::App app("The CPU device beside copies, plain loops, std:: and oneTBB, in one process and interleaved rounds");
  AddFlags(app, &options);
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.log2_items = {10, 18};  // One part; several, so that threads share the work.
    options.rounds = 1;
  }
  const std::vector<PeerFigure> peers = options.peers.empty() ? std::vector<PeerFigure>() : ReadPeers(options.peers);
  if (!options.csv.empty() && !std::ofstream(options.csv, std::ios::trunc)) Fail("can't write " + options.csv);
  for (const int log2_items : options.log2_items) Measure(options, log2_items, peers);
  return 0;
}

}  // namespace
}  // namespace prefixd::bench

int main(int argc, char** argv) { return prefixd::bench::Main(argc, argv); }
