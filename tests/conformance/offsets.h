// Offsets of segments that need care: lengths at the edges of what a kernel works on at once, means at those where
// another kernel takes over, and many segments of nothing.
#ifndef PREFIXD_TESTS_CONFORMANCE_OFFSETS_H_
#define PREFIXD_TESTS_CONFORMANCE_OFFSETS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/conformance/data.h"

namespace prefixd::conformance {

enum class Lengths {
  kMixed,      // Some of everything.
  kEdges,      // Those of a thread's array, a warp's, a leaf, a tile and several, or one off.
  kMeans,      // The mean is where another kernel takes over, or one off. So are all bytes together.
  kRangeEnds,  // Segments end where a block's range does, or one off; and so does the last one.
  kDwarfs,     // A few items at most, of about as many segments as get the value of an empty one beforehand.
  kGiant,      // One of more than a group among dwarfs.
  kEmptyRuns,  // Up to tens of thousands of nothing in a row.
  kNothing,    // No items at all.
};
inline constexpr int kNumLengths = 8;
std::string_view Name(Lengths lengths);

// At least one segment. item_bytes: of an element, on which it depends how many a range has. At most 4,000 elements if
// SmallSizesOnly, else some hundred thousand; a giant of 8 bytes each is a million at times.
std::vector<uint64_t> MakeOffsets(Lengths lengths, size_t item_bytes, Random& random);

}  // namespace prefixd::conformance

#endif  // PREFIXD_TESTS_CONFORMANCE_OFFSETS_H_
