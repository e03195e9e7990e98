// Segments of an array, as the client has them.
#ifndef PREFIXD_CLIENT_SEGMENTS_H_
#define PREFIXD_CLIENT_SEGMENTS_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/types/span.h"
#include "client/array.h"

namespace prefixd::v1 {
class Operand;
}

namespace prefixd::client {

// Where each segment begins, and where the last one ends: one more than there are segments. The first is 0, the last
// the number of elements, and none is below the one before. On this side, or in an array of u64.
using SegmentOffsets = std::variant<absl::Span<const uint64_t>, ArrayPart>;

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

uint64_t NumSegments(const SegmentOffsets& offsets);

void ToWire(const SegmentOffsets& offsets, v1::Operand* operand);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_SEGMENTS_H_
