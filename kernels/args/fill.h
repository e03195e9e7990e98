// The arguments of Lane::Fill.
#ifndef PREFIXD_KERNELS_ARGS_FILL_H_
#define PREFIXD_KERNELS_ARGS_FILL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/glue.h"

namespace prefixd {

// Items first_item .. first_item + num_items - 1 of an array that index alone defines. So pieces of it, however it is
// cut, have the items of the whole. kernels/NUMERICS.md says what they are.
struct FillArgs {
  DType dtype = DType::kI32;
  FillKind kind = FillKind::kConstant;
  Value value = {};         // kConstant: every item. kIota: item 0.
  Value step = {};          // kIota: what an item is larger than the one before.
  uint64_t seed = 0;        // kRandom.
  uint64_t first_item = 0;  // The index of out[0].
  void* out = nullptr;      // Device.
  uint64_t num_items = 0;
};

// The checks that Lane::Fill makes before it enqueues. Errors: those of Lane::Fill.
absl::Status Validate(const FillArgs& args);

// Bytes written.
inline uint64_t NumBytes(const FillArgs& args) { return args.num_items * SizeOf(args.dtype); }

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_FILL_H_
