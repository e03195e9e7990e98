#include "client/segments.h"

#include <algorithm>

#include "prefixd/v1/arrays.pb.h"
#include "proto/wire_array.h"

namespace prefixd::client::internal {

uint64_t NumSegments(const SegmentOffsets& offsets) {
  const auto* const array = std::get_if<ArrayPart>(&offsets);
  const uint64_t count = array != nullptr ? array->num_items() : std::get<absl::Span<const uint64_t>>(offsets).size();
  return std::max<uint64_t>(count, 1) - 1;
}

void ToWire(const SegmentOffsets& offsets, v1::Operand* operand) {
  if (const auto* const array = std::get_if<ArrayPart>(&offsets)) {
    *operand->mutable_array() = prefixd::ToWire(array->slice());
    return;
  }
  const auto& here = std::get<absl::Span<const uint64_t>>(offsets);
  operand->mutable_inline_()->set_data(here.data(), here.size() * sizeof(uint64_t));
}

}  // namespace prefixd::client::internal
