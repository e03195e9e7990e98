// The arguments of Lane::FindRuns.
#ifndef PREFIXD_KERNELS_ARGS_RUNS_H_
#define PREFIXD_KERNELS_ARGS_RUNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/types.h"

namespace prefixd {

// Keys next to each other that are equal are a run. A NaN is equal to none, and -0 to +0. offsets[r] is where the run r
// begins; behind the last one stands num_items.
struct RunsArgs {
  DType dtype = DType::kI32;
  const void* keys = nullptr;  // Device: num_items of dtype.
  uint64_t num_items = 0;
  void* scratch = nullptr;          // Device: RunsScratchBytes(num_items), aligned to 8 bytes. It is overwritten.
  uint64_t* offsets = nullptr;      // Device: room for num_items + 1. These three are disjoint.
  uint64_t* num_offsets = nullptr;  // Device: set to the number of runs, and one. Required.
};

// The keys of a part are looked at together.
inline constexpr uint64_t kRunsPartItems = 8192;

// Needs: num_items of an array that is there, or could be.
constexpr uint64_t RunsScratchBytes(uint64_t num_items) {
  const uint64_t num_parts = num_items / kRunsPartItems + 1;
  return num_parts * (kRunsPartItems / 8 + sizeof(uint64_t));  // A bit for each key, and a count.
}

// The checks that Lane::FindRuns makes before it enqueues. Errors: those of the call.
absl::Status Validate(const RunsArgs& args);

// Bytes of the keys.
uint64_t NumBytes(const RunsArgs& args);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_RUNS_H_
