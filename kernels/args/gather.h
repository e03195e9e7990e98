// The arguments of Lane::Gather and Lane::Scatter.
#ifndef PREFIXD_KERNELS_ARGS_GATHER_H_
#define PREFIXD_KERNELS_ARGS_GATHER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/types.h"

namespace prefixd {

// out[i] = in[indices[i]]; 0 where the index is in_items or more.
struct GatherArgs {
  DType dtype = DType::kI32;
  DType index_dtype = DType::kU64;  // kU64 or kU32.
  const void* in = nullptr;         // Device: in_items of dtype.
  uint64_t in_items = 0;
  const void* indices = nullptr;  // Device: num_items of index_dtype.
  void* out = nullptr;            // Device: num_items of dtype, disjoint from the others.
  uint64_t num_items = 0;
  uint64_t* num_bad = nullptr;  // Device: set to the number of indices that are too large. Required.
};

// out[indices[i]] = in[i]; what stands at no index stays. An index of out_items or more writes nothing. The indices are
// to be distinct: where several are the same, one of their items is written, and it is not defined which.
struct ScatterArgs {
  DType dtype = DType::kI32;
  DType index_dtype = DType::kU64;  // kU64 or kU32.
  const void* in = nullptr;         // Device: num_items of dtype.
  const void* indices = nullptr;    // Device: num_items of index_dtype.
  uint64_t num_items = 0;
  void* out = nullptr;  // Device: out_items of dtype, disjoint from the others.
  uint64_t out_items = 0;
  uint64_t* num_bad = nullptr;  // Device: set to the number of indices that are too large. Required.
};

// The checks that Lane::Gather and Lane::Scatter make before they enqueue. Errors: those of the calls.
absl::Status Validate(const GatherArgs& args);
absl::Status Validate(const ScatterArgs& args);

// Bytes read and written if every index is another, and good.
uint64_t NumBytes(const GatherArgs& args);
uint64_t NumBytes(const ScatterArgs& args);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_GATHER_H_
