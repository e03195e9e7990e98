// Scans by min and max that also say where each extremum stands. A device that has no kernel for the shape does it in
// three steps, each at the speed of memory: the extrema, by a scan like any other; a mark for each element where one
// may stand; and a scan of the marks, by max, or by min in a reverse scan.
//
//   in      3  1  2  1                        marks  0  1  0  0     (where the extremum changed)
//   extrema 3  1  1  1   by min               last   0  1  0  3     (where the element is the extremum)
//
// Cost of the three: reads n elements and writes n extrema; reads these, and for some forms the elements again, and
// writes n marks; reads the marks and writes n indices. Three launches, and more where a scan takes more than one;
// and one for a carry.
#ifndef PREFIXD_KERNELS_ARGS_EXTREMA_H_
#define PREFIXD_KERNELS_ARGS_EXTREMA_H_

#include <cstdint>
#include <type_traits>

#include "kernels/args/batch.h"
#include "kernels/args/scan.h"
#include "kernels/inline_anywhere.h"
#include "kernels/same_bytes.h"
#include "kernels/types.h"

namespace prefixd {

// What joins the parts of an array in such a scan.
struct ExtremumCarry {
  Value value;  // AccumulatorOf(dtype) is its type.
  uint64_t index = 0;
};
static_assert(sizeof(ExtremumCarry) == 16);

// marks[i] = i, as an index, where extrema[i] may stand at i; else none: 0, or of a reverse scan the largest index.
struct MarkArgs {
  DType dtype = DType::kI32;
  const void* in = nullptr;       // Device.
  const void* extrema = nullptr;  // Device: of in, an inclusive scan.
  uint64_t num_items = 0;         // These four as in ScanArgs.
  uint64_t num_arrays = 1;
  BatchOrder order = BatchOrder::kOneByOne;
  const uint64_t* offsets = nullptr;
  bool reverse = false;
  bool marks_equals = false;  // All elements that are the extremum so far. Else those where it changed, and the first.
  uint64_t first_item = 0;
  const ExtremumCarry* before = nullptr;  // Device: what stands before the first element. Null: nothing.
  void* marks = nullptr;                  // Device: of index_dtype.
  DType index_dtype = DType::kU64;

  uint64_t NumItems() const { return offsets != nullptr ? num_items : num_items * num_arrays; }
};

// The three steps of a scan with indices, for which Validate is OK. The device writes carry_out behind them.
ScanArgs ExtremaOf(const ScanArgs& args);
MarkArgs MarksOf(const ScanArgs& args);
ScanArgs ScanOfMarks(const ScanArgs& args);

// Bytes that marking reads and writes.
uint64_t NumBytes(const MarkArgs& args);

// Whether min and max take the elements for the same: all NaNs are, and -0 and +0 are not.
template <class T>
PREFIXD_INLINE_ANYWHERE bool AreSame(T a, T b) {
  if constexpr (kIsFloating<T>) {
    using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
    const Accumulator<T> x = a, y = b;
    return SameBytes<Bits>(a) == SameBytes<Bits>(b) || (x != x && y != y);
  } else {
    return a == b;
  }
}

}  // namespace prefixd

#endif  // PREFIXD_KERNELS_ARGS_EXTREMA_H_
