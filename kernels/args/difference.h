// The arguments of Lane::Difference.
#ifndef PREFIXD_KERNELS_ARGS_DIFFERENCE_H_
#define PREFIXD_KERNELS_ARGS_DIFFERENCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/algorithm.h"
#include "kernels/args/batch.h"
#include "kernels/types.h"

namespace prefixd {

// out[0] = in[0] - init, out[i] = in[i] - in[i-1]; reversed: out[n-1] = in[n-1] - init, out[i] = in[i] - in[i+1].
// Integers wrap. A NaN comes out canonical.
struct DifferenceArgs {
  DType dtype = DType::kI32;
  bool reverse = false;
  Algorithm algorithm;
  const void* in = nullptr;  // Device.
  void* out = nullptr;       // Device; another array than in.
  uint64_t num_items = 0;
  uint64_t num_arrays = 1;  // See Lane. Several arrays have no carries.
  BatchOrder order = BatchOrder::kOneByOne;
  const uint64_t* offsets = nullptr;  // Device: of segments, as in ScanArgs. num_items is that of all.
  Value init;                         // The element before in[0] (reversed: behind in[n-1]). Used if carry_in is null.
  const void* carry_in = nullptr;     // Device, one element of the chunk before: takes the place of init.
  void* carry_out = nullptr;  // Device, one element, may equal carry_in: in[n-1] (reversed: in[0]). Null: not wanted.
};

// The checks that Lane::Difference makes before it enqueues. Errors: those of Lane::Difference, except the algorithm's.
absl::Status Validate(const DifferenceArgs& args);

// Bytes read and written.
uint64_t NumBytes(const DifferenceArgs& args);

// The arguments for one array of a batch, by itself. Needs: they stand one by one.
DifferenceArgs ArrayOf(DifferenceArgs batch, uint64_t array);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_DIFFERENCE_H_
