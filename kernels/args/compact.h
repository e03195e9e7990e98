// The arguments of Lane::Compact.
#ifndef PREFIXD_KERNELS_ARGS_COMPACT_H_
#define PREFIXD_KERNELS_ARGS_COMPACT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/algorithm.h"
#include "kernels/types.h"

namespace prefixd {

// Keeps the elements whose selector holds (or, inverted, does not), in their order.
struct CompactArgs {
  DType dtype = DType::kI32;
  Selector selector = Selector::kPredicate;
  Comparison comparison = Comparison::kLess;  // kPredicate: element comparison value, by IEEE rules.
  Value value;                                // kPredicate, if HasValue.
  Value end;                                  // kPredicate, if HasEnd.
  const void* mask = nullptr;  // Device. kByteMask: a byte an element. kBitMask: a bit an element, lowest bit first.
  bool invert = false;
  Algorithm algorithm;
  const void* in = nullptr;  // Device. May be null if a mask selects and values is null.
  uint64_t num_items = 0;
  uint64_t num_arrays = 1;          // See Lane.
  uint64_t first_item = 0;          // Index of in[0] in the whole array; added to the indices.
  void* values = nullptr;           // Device: room for num_items elements. Null: not wanted.
  void* indices = nullptr;          // Device: room for num_items of index_dtype. Null: not wanted.
  DType index_dtype = DType::kU64;  // kU64, or kU32 if first_item + num_items <= 2^32.
  uint64_t* count = nullptr;        // Device: set to the number kept. Required.
};

// Bytes of one array's mask.
uint64_t MaskBytes(const CompactArgs& args);

// The checks that Lane::Compact makes before it enqueues. Errors: those of Lane::Compact, except the algorithm's.
absl::Status Validate(const CompactArgs& args);

// The arguments for one array of a batch, by itself.
CompactArgs ArrayOf(CompactArgs batch, uint64_t array);

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_COMPACT_H_
