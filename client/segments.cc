#include "client/segments.h"

#include <algorithm>

#include "base/status.h"
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

void ToWire(const Keys& keys, v1::Operand* operand) {
  if (const auto* const array = std::get_if<ArrayPart>(&keys.where())) {
    *operand->mutable_array() = prefixd::ToWire(array->slice());
    return;
  }
  const Bytes here = std::get<Bytes>(keys.where());
  operand->mutable_inline_()->set_data(here.data(), here.size());
}

absl::Status CheckSegments(bool segmented, const std::optional<SegmentOffsets>& segments,
                           const std::optional<Keys>& keys) {
  const auto conflict = [](std::string_view field, std::string_view why) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", field, why);
  };
  if (segments && keys) return conflict("keys", "there are keys and offsets of segments: leave one out");
  if (!segmented && (segments || keys)) {
    return conflict(keys ? "keys" : "segment_offsets",
                    "there are segments, and the spec is not of segments: set its `segmented`, or leave them out");
  }
  if (!segmented || segments || keys) return absl::OkStatus();
  return conflict(
      "segment_offsets",
      "the spec is of segments, and nothing says where they are: name arrays with their offsets or keys, or "
      "use the options of Client::Scan, Reduce, Compact and Difference");
}

}  // namespace prefixd::client::internal
