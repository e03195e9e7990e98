// What Client::RunBenchmark asks and what it hears.
#ifndef PREFIXD_CLIENT_BENCHMARK_H_
#define PREFIXD_CLIENT_BENCHMARK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/options.h"
#include "kernels/algorithm.h"
#include "kernels/spec.h"
#include "kernels/types.h"

namespace prefixd::client {

class Connection;  // connection.h, which is private to the library.

// Every combination is measured, on data of the server's own.
struct BenchmarkSpec {
  std::vector<Primitive> primitives = {Primitive::kScan};
  std::vector<DType> dtypes = {DType::kF32};
  std::vector<Op> ops = {Op::kSum};        // For the primitives that have an operator.
  std::vector<Algorithm> algorithms = {};  // Empty: the device's default.
  std::vector<uint64_t> num_items;         // Sizes of the arrays, in elements.
  uint32_t repetitions = 20;               // Samples of each combination.
  // The form, which each primitive must have. Types and operators without it are skipped.
  std::optional<Axis> axis = {};
  Precision precision = Precision::kNative;
  bool return_indices = false;  // A scan by min or max returns them.
};

// By the device's clock, in nanoseconds.
struct BenchmarkTimes {
  int64_t p10_ns = 0;
  int64_t median_ns = 0;
  int64_t p90_ns = 0;
  int64_t copy_ns = 0;  // The median of the device's own copy of as many bytes, in the same run.
};

// One combination.
struct BenchmarkResult {
  Primitive primitive = Primitive::kScan;
  DType dtype = DType::kF32;
  std::optional<Op> op;  // Absent where the primitive has none, as compact.
  Algorithm algorithm;   // What ran, every default filled in; what was asked for if it was skipped.
  uint64_t num_items = 0;
  std::optional<BenchmarkTimes> times;  // Absent: it was skipped.
  std::string skipped;                  // Why.
  uint64_t num_bytes = 0;               // What had to be moved: read plus written.
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

using BenchmarkSink = absl::FunctionRef<absl::Status(const BenchmarkResult& result)>;

namespace internal {

absl::Status RunBenchmark(const Connection& connection, const BenchmarkSpec& spec, BenchmarkSink sink,
                          const CallOptions& call);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_BENCHMARK_H_
