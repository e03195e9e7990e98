// The arguments of Lane::CountSegments.
#ifndef PREFIXD_KERNELS_ARGS_COUNT_H_
#define PREFIXD_KERNELS_ARGS_COUNT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/types.h"

namespace prefixd {

// counts[s] = how many of the indices are offsets[s] or more, and below offsets[s + 1]. The indices are distinct.
struct CountArgs {
  DType index_dtype = DType::kU64;  // kU64 or kU32.
  const void* indices = nullptr;    // Device: num_indices of index_dtype, ascending.
  uint64_t num_indices = 0;
  const uint64_t* offsets = nullptr;  // Device: num_items + 1, likewise.
  uint64_t* counts = nullptr;         // Device: num_items, disjoint from the others.
  uint64_t num_items = 0;
};

// The checks that Lane::CountSegments makes before it enqueues. Errors: those of the call.
absl::Status Validate(const CountArgs& args);

// Bytes of the offsets and the counts.
uint64_t NumBytes(const CountArgs& args);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_COUNT_H_
