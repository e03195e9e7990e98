// How long a lane takes for one primitive on one array, beside the device's own copy of as many bytes.
//
// Each sample begins with caches that hold nothing of the array. Samples of the work and of the copy alternate, so that
// both meet the same clocks and the same neighbours. The data is random from a fixed seed: the same in every run.
#ifndef PREFIXD_SERVER_WORK_MEASUREMENT_H_
#define PREFIXD_SERVER_WORK_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/spec.h"
#include "kernels/types.h"
#include "server/work/work.h"

namespace prefixd {

// What a benchmark is to measure: every combination, of primitives that have one with every operator.
struct BenchmarkSpec {
  std::vector<Primitive> primitives;
  std::vector<DType> dtypes;
  std::vector<Op> ops;                // Empty: sum.
  std::vector<Algorithm> algorithms;  // Empty: the device's default.
  std::vector<uint64_t> sizes;        // In items.
  uint32_t repetitions = 20;          // Samples of each.
  std::string request_id;
  // The form, for each primitive.
  std::optional<Axis> axis = {};
  Precision precision = Precision::kNative;
  bool return_indices = false;
};

struct BenchmarkCase {
  Spec spec;
  uint64_t num_items = 0;

  friend bool operator==(const BenchmarkCase&, const BenchmarkCase&) = default;
};

// By the device's clock. What takes longer is skipped: its samples would hold their lane for too long.
inline constexpr int64_t kMaxSampleNs = 1'000'000'000;
// All samples of a case together, those of the copy too, take at most so long: 20 repetitions of the slowest.
inline constexpr int64_t kMaxCaseNs = 40 * kMaxSampleNs;

struct Measurement {
  BenchmarkCase what;   // With the algorithm that ran; with the one asked for if it was skipped.
  std::string skipped;  // Why there are no times; empty: there are.
  // By the device's clock.
  int64_t p10_ns = 0;
  int64_t median_ns = 0;  // What was skipped for being slow has its one sample here.
  int64_t p90_ns = 0;
  int64_t copy_ns = 0;     // Median of the device's copy that moves num_bytes.
  uint64_t num_bytes = 0;  // That had to be moved: read plus written.
  uint64_t launches = 0;
};

// All combinations, primitives outermost and sizes innermost; a primitive without an operator once for all of them.
// Errors: INVALID_ARGUMENT (BENCHMARK_SPEC) for none, for more than 4,096, for sizes or repetitions out of range, and
// for
//         a form that one of the primitives does not have.
absl::StatusOr<std::vector<BenchmarkCase>> Expand(const BenchmarkSpec& spec);

// Bytes of the arrays that a case needs on the device; the largest number if it is too large to say.
uint64_t ArrayBytes(const BenchmarkCase& what);

// The work of a case, if it can be run. The device outlives it.
// Errors: those of MakeWork and of Work::CheckLength; UNIMPLEMENTED for what no algorithm serves.
absl::StatusOr<std::unique_ptr<const Work>> MakeCase(const Device& device, const BenchmarkCase& what);

// Why a case is skipped: it, or a shorter one of num_items, takes that long.
std::string TooSlow(uint64_t num_items, int64_t sample_ns);

// Measures one case, or skips it after one sample: one above kMaxSampleNs, or so many that they exceed kMaxCaseNs.
// `stop` is asked before every sample; what it returns, if not OK, ends the measurement.
// Needs:   nothing enqueued on the lane. Leaves nothing behind, in its times either.
// Errors:  those of MakeCase and of the device.
// Cost:    device memory for ArrayBytes and DeviceInfo::cache_flush_bytes; blocks until it is done.
absl::StatusOr<Measurement> Measure(const Device& device, Lane& lane, const BenchmarkCase& what, uint32_t repetitions,
                                    const std::function<absl::Status()>& stop);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_WORK_MEASUREMENT_H_
