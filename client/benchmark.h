// What Client::RunBenchmark asks and what it hears.
#ifndef PREFIXD_CLIENT_BENCHMARK_H_
#define PREFIXD_CLIENT_BENCHMARK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/types.h"

namespace prefixd::client {

// Every combination is measured, on data of the server's own.
struct BenchmarkSpec {
  std::vector<Primitive> primitives = {Primitive::kScan};
  std::vector<DType> dtypes = {DType::kF32};
  std::vector<Op> ops = {Op::kSum};        // Of scan and reduce.
  std::vector<Algorithm> algorithms = {};  // Empty: the device's default.
  std::vector<uint64_t> num_items;         // Sizes of the arrays, in elements.
  uint32_t repetitions = 20;               // Samples of each combination.
};

// By the device's clock, in nanoseconds.
struct BenchmarkTimes {
  int64_t p10_ns = 0;
  int64_t median_ns = 0;
  int64_t p90_ns = 0;
  int64_t copy_ns = 0;  // Median of the device's own copy, in the same run, that moves as many bytes.
};

// One combination.
struct BenchmarkResult {
  Primitive primitive = Primitive::kScan;
  DType dtype = DType::kF32;
  std::optional<Op> op;  // Not of compact.
  Algorithm algorithm;   // What ran, every default filled in; what was asked for if it was skipped.
  uint64_t num_items = 0;
  std::optional<BenchmarkTimes> times;  // Absent: it was skipped.
  std::string skipped;                  // Why.
  uint64_t num_bytes = 0;               // That had to be moved: read plus written.
  uint64_t launches = 0;
  uint32_t repetitions = 0;
  std::string device;
  uint32_t numerics_version = 0;

  // Bytes a nanosecond; 0 if the clock is too coarse to tell, or it was skipped.
  double GbPerS() const { return times ? Rate(times->median_ns) : 0; }
  double CopyGbPerS() const { return times ? Rate(times->copy_ns) : 0; }

 private:
  double Rate(int64_t ns) const { return ns > 0 ? static_cast<double>(num_bytes) / static_cast<double>(ns) : 0; }
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_BENCHMARK_H_
