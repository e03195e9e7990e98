// Helpers for the arguments of several primitives: checks, and the step from one array of a batch to the next.
#ifndef PREFIXD_KERNELS_ARGS_CHECK_H_
#define PREFIXD_KERNELS_ARGS_CHECK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "kernels/args/batch.h"
#include "kernels/types.h"

namespace prefixd {

// Errors: INVALID_ARGUMENT (UNSUPPORTED_COMBINATION) unless IsSupported(the arguments). Needs: HasOp(primitive).
absl::Status ValidateOp(Primitive primitive, DType dtype, DType out_dtype, Op op);

// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) unless IsSupported(dtype). For primitives without an operator.
absl::Status ValidateDType(Primitive primitive, DType dtype);

// Errors: INVALID_ARGUMENT naming `what` unless the pointer is aligned to its elements.
absl::Status ValidateAligned(const void* pointer, DType dtype, std::string_view what);

// Errors: INVALID_ARGUMENT for an index_dtype that is neither u64 nor u32; OUT_OF_RANGE (INDEX_OVERFLOW) if the last
//         index of num_items from first_item on does not fit it.
absl::Status ValidateIndexType(DType index_dtype, uint64_t first_item, uint64_t num_items);

// has_carries: whether the call carries something in or out. Only a call with a single array may.
// Errors: INVALID_ARGUMENT for no arrays, more arrays than a grid has blocks, over 2^64 bytes, or a batch with carries.
absl::Status ValidateBatch(uint64_t num_arrays, uint64_t num_items, bool has_carries);

// The same of arguments whose arrays may be the columns of a matrix, or segments, which have num_items together.
// Errors: INVALID_ARGUMENT for segments that are interleaved, or with carries, too.
template <class Args>
absl::Status ValidateArrays(const Args& args, bool has_carries) {
  if (args.offsets == nullptr) return ValidateBatch(args.num_arrays, args.num_items, has_carries);
  if (has_carries || args.order != BatchOrder::kOneByOne) {
    return absl::InvalidArgumentError("segments stand one by one, and have no carries");
  }
  return ValidateBatch(args.num_arrays, args.num_items / std::max<uint64_t>(args.num_arrays, 1), has_carries);
}

// An array among the arguments of the glue, as messages name it.
struct ArrayArg {
  std::string_view name;
  const void* data;
  DType dtype;  // Served.
  uint64_t num_items;
};

// Errors: UNIMPLEMENTED (NOT_IMPLEMENTED) naming the call and its argument unless IsSupported(dtype).
absl::Status ValidateServed(std::string_view call, std::string_view name, DType dtype);

// Errors: INVALID_ARGUMENT naming the array if it is null and has items, is not aligned to its elements, or is larger
//         than any memory.
absl::Status ValidateArray(const ArrayArg& array);

// Needs:  ValidateArray is OK for both.
// Errors: INVALID_ARGUMENT naming both if they share a byte.
absl::Status ValidateDisjoint(const ArrayArg& a, const ArrayArg& b);

// Moves a pointer on by num_bytes. Null stays null.
inline const void* Advance(const void* pointer, uint64_t num_bytes) {
  return pointer == nullptr ? nullptr : static_cast<const std::byte*>(pointer) + num_bytes;
}
inline void* Advance(void* pointer, uint64_t num_bytes) {
  return pointer == nullptr ? nullptr : static_cast<std::byte*>(pointer) + num_bytes;
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_CHECK_H_
