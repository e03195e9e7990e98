// The arguments of Lane::Transpose.
#ifndef PREFIXD_KERNELS_ARGS_TRANSPOSE_H_
#define PREFIXD_KERNELS_ARGS_TRANSPOSE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/types.h"

namespace prefixd {

// out[c][r] = in[r][c]: in is num_rows x num_columns, out num_columns x num_rows. The items of a row stand together.
struct TransposeArgs {
  DType dtype = DType::kI32;
  const void* in = nullptr;  // Device.
  void* out = nullptr;       // Device; disjoint from in.
  uint64_t num_rows = 0;
  uint64_t num_columns = 0;
};

// The checks that Lane::Transpose makes before it enqueues. Errors: those of Lane::Transpose.
absl::Status Validate(const TransposeArgs& args);

// Bytes read and written.
uint64_t NumBytes(const TransposeArgs& args);

// Whether the items stay where they are: a matrix of one row or one column is no slower to transpose than to copy.
inline bool IsCopy(const TransposeArgs& args) { return args.num_rows == 1 || args.num_columns == 1; }

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_TRANSPOSE_H_
