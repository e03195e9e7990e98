// prefixctl bench: benchmarks of the server's device, shown as they are measured.
#ifndef PREFIXD_CLIENT_CLI_BENCH_H_
#define PREFIXD_CLIENT_CLI_BENCH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/benchmark.h"
#include "client/cli/commands.h"
#include "client/spec.h"
#include "kernels/types.h"

namespace prefixd::cli {

// Empty types, operators or algorithms: all that the server lists for the primitives; algorithms with no knobs and,
// where they have some, also padded, with 4 items per thread, and with both.
struct BenchFlags {
  std::vector<Primitive> primitives = {Primitive::kScan, Primitive::kReduce, Primitive::kCompact};
  std::vector<DType> dtypes = {DType::kF32};
  std::vector<Op> ops = {Op::kSum};
  std::vector<Algorithm> algorithms = {{}};
  std::vector<uint64_t> sizes;  // In elements; at least one.
  uint32_t repetitions = 20;
  bool csv = false;
  std::optional<std::string> plot;  // An SVG file.
};

// Prints, on standard output, a table or CSV as it is measured, or at the end one JSON object; then writes the plot.
// What ends it early, SIGINT and SIGTERM among it, leaves what came until then, and is its error.
// Errors: FAILED_PRECONDITION if there was nothing but skipped combinations.
// Needs:  as CancelOnInterrupt.
absl::Status RunBench(const GlobalFlags& global, const BenchFlags& flags);

// Sizes in elements: numbers, powers such as 2^20, and ranges, which grow by factors of four up to their end.
// Example: "1000,2^10..2^13" -> 1000, 1024, 4096, 8192
absl::StatusOr<std::vector<uint64_t>> ParseSizes(std::string_view text);

// What to ask a server for.
client::BenchmarkSpec BenchSpec(const BenchFlags& flags, const client::ServerInfo& info);

// Whether a result is only there because `all` asked for every combination of what the server lists, of which it does
// not list this one.
bool IsUnasked(const client::BenchmarkResult& result, const BenchFlags& flags, const client::ServerInfo& info);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_CLI_BENCH_H_
