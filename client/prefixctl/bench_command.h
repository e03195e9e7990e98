// prefixctl bench: benchmarks of the server's device, shown as they are measured.
#ifndef PREFIXD_CLIENT_PREFIXCTL_BENCH_COMMAND_H_
#define PREFIXD_CLIENT_PREFIXCTL_BENCH_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/benchmark.h"
#include "client/client.h"
#include "client/prefixctl/array_command.h"
#include "client/prefixctl/command.h"
#include "kernels/types.h"

namespace prefixd::cli {

// All that there are, in their order.
std::vector<Primitive> AllPrimitives();

// Empty types, operators or algorithms: all that the server lists for the primitives; algorithms with no knobs and,
// where they have some, also padded, with 4 items per thread, and with both.
struct BenchFlags {
  std::vector<Primitive> primitives = AllPrimitives();
  std::vector<DType> dtypes = {DType::kF32};
  std::vector<Op> ops = {Op::kSum};
  std::vector<Algorithm> algorithms = {{}};
  std::vector<uint64_t> sizes;  // In elements; at least one.
  uint32_t repetitions = 20;
  AxisFlags axis;
  Precision precision = Precision::kNative;
  bool indices = false;
  bool csv = false;
  std::optional<std::string> plot;  // An SVG file.
};

void AddBenchCommand(CLI::App& app, Commands* commands);

// What to ask a server for.
client::BenchmarkSpec BenchSpec(const BenchFlags& flags, const client::ServerInfo& info);

// Whether a result is only there because `all` asked for every combination of what the server lists, of which it does
// not list this one.
bool IsUnasked(const client::BenchmarkResult& result, const BenchFlags& flags, const client::ServerInfo& info);

}  // namespace prefixd::cli

#endif  // PREFIXD_CLIENT_PREFIXCTL_BENCH_COMMAND_H_
