// What cpu_bench measures: cases, and who computes each of them. A case is checked when it is added, and timed later,
// in turns with all others.
//
//   Suite suite(options, num_items);
//   AddScanCases(suite);
//   suite.Measure();
//   for (const Row& row : suite.rows()) ...
#ifndef PREFIXD_TESTS_BENCH_CPU_SUITE_H_
#define PREFIXD_TESTS_BENCH_CPU_SUITE_H_

#include <tbb/task_arena.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "tests/bench/cpu_copies.h"
#include "tests/bench/cpu_data.h"

namespace prefixd::bench {

// The threads that a contender may use.
enum class Threads { kOne, kAnyNumber };

// Who computes a case, and how. The work leaves values and numbers in Data, and returns what else comes out: a count, a
// position, or 0.
struct Contender {
  std::string who;
  Threads threads;
  std::function<uint64_t()> work;
};

// Whom a case is measured beside: everybody, or the plain loop alone.
enum class Beside { kAll, kLoop };

inline constexpr char kPrefixd[] = "prefixd";
inline constexpr char kLoop[] = "loop";
inline constexpr char kStd[] = "std";
inline constexpr char kStdPar[] = "std par";
inline constexpr char kTbb[] = "oneTBB";

struct Case {
  std::string name;                   // "scan f32 sum", by which --filter and the peers in Python know it.
  double bytes = 0;                   // That must move: read plus written.
  uint64_t copy_bytes = 0;            // The length of the copy that it is measured against.
  size_t value_bytes = 0;             // Results to compare, at the front of Data::values.
  size_t number_bytes = 0;            // The same of Data::numbers.
  const void* source = nullptr;       // In place: what Data::values must hold before.
  std::vector<Contender> contenders;  // The first says what is right.
};

// One contender of one case, with one number of threads.
struct Row {
  std::string what;
  std::string who;
  int threads = 1;
  double bytes = 0;
  uint64_t copy_bytes = 0;
  const void* source = nullptr;
  std::function<void()> work;
  std::vector<double> ms;  // Ascending once measured.

  double MedianMs() const { return ms[ms.size() / 2]; }
  double GbPerSecond() const { return bytes / MedianMs() / 1e6; }
};

struct Options {
  std::vector<int> log2_items = {24};
  int rounds = 9;
  int threads = 0;
  uint64_t seed = 1;
  std::string isa = "auto";
  bool every_case = false;
  std::string filter;
  std::string csv;
  std::string peers;
  bool smoke = false;
};

class Suite {
 public:
  Suite(const Options& options, uint64_t num_items);

  bool Wanted(const std::string& name) const { return std::regex_search(name, filter_); }

  // Runs each contender with each number of threads, ends the process if one has other results than the first, and
  // makes rows of them. Nothing happens unless Wanted(name).
  void Add(const Case& made);

  // Adds the copies of all lengths that the cases so far ask for.
  void AddCopies();

  // Times every row once in each round, from cold and clean caches; with --every-case several calls, of which all but
  // the first have what the caches hold. The first round is not counted.
  void Measure();

  const Data& data() const { return data_; }
  Lane& lane() { return *lane_; }
  const std::string& DeviceName() const { return device_->info().name; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void AddCopy(const char* who, int threads, uint64_t copy_bytes, const std::function<void()>& copy);
  double TimeOnce(const Row& row);
  tbb::task_arena& Arena(int threads) { return threads == 1 ? one_ : all_; }

  const Options& options_;
  const std::regex filter_;
  const uint64_t num_calls_;  // In a sample. Several find the data, and the code, in the caches.
  const Data data_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Lane> lane_;
  const Memory flush_;
  const Memory expected_values_;
  const Memory expected_numbers_;
  std::vector<int> thread_counts_;
  Team team_;
  tbb::task_arena one_;
  tbb::task_arena all_;
  std::vector<Row> rows_;
};

[[noreturn]] void Fail(const std::string& message);

// Ends the process with a message unless the status is OK.
void Check(const absl::Status& status);

void AddScanCases(Suite& suite);
void AddReduceCases(Suite& suite);
void AddCompactCases(Suite& suite);
void AddDifferenceCases(Suite& suite);

// Every type, operator and kind, beside the plain loop alone.
void AddEveryScan(Suite& suite);
void AddEveryReduce(Suite& suite);
void AddEveryCompact(Suite& suite);
void AddEveryDifference(Suite& suite);

}  // namespace prefixd::bench

#endif  // PREFIXD_TESTS_BENCH_CPU_SUITE_H_
