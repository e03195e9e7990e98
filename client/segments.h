// Segments of an array, as the client has them: by offsets, or by keys.
#ifndef PREFIXD_CLIENT_SEGMENTS_H_
#define PREFIXD_CLIENT_SEGMENTS_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/array.h"
#include "client/chunk.h"
#include "kernels/types.h"

namespace prefixd::v1 {
class Operand;
}

namespace prefixd::client {

// Where each segment begins, and where the last one ends: one more than there are segments. The first is 0, the last
// the number of elements, and none is below the one before. On this side, or in an array of u64.
// Owns: nothing. What it names outlives the call.
using SegmentOffsets = std::variant<absl::Span<const uint64_t>, ArrayPart>;

// One key for each element, of any type: elements next to each other with equal keys are a segment. A NaN is equal to
// none, -0 to +0. On this side, up to 1 MiB, or in an array.
// Owns: nothing. What it names outlives the call.
class Keys {
 public:
  template <class K>
  Keys(absl::Span<const K> keys)  // NOLINT(google-explicit-constructor): as a call's values.
      : dtype_(kDTypeOf<K>), where_(AsBytes(keys)) {}
  Keys(const ArrayPart& keys)  // NOLINT(google-explicit-constructor): as a call's values.
      : dtype_(keys.dtype()), where_(keys) {}

  DType dtype() const { return dtype_; }
  const std::variant<Bytes, ArrayPart>& where() const { return where_; }  // For the library.

 private:
  DType dtype_;
  std::variant<Bytes, ArrayPart> where_;
};

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

uint64_t NumSegments(const SegmentOffsets& offsets);

void ToWire(const SegmentOffsets& offsets, v1::Operand* operand);
void ToWire(const Keys& keys, v1::Operand* operand);

// What of the options cuts the values, into a part: a spec with what comes beside it.
template <class Options, class Part>
void TakeCuts(const Options& options, Part* part) {
  part->segmented = options.segments || options.keys;
  if (options.keys) part->key_dtype = options.keys->dtype();
  part->segments = options.segments;
  part->keys = options.keys;
}
// And from there into its request.
template <class Part, class Request>
void CutsToWire(const Part& part, Request* request) {
  if (part.segments) ToWire(*part.segments, request->mutable_segment_offsets());
  if (part.keys) ToWire(*part.keys, request->mutable_keys());
}

// What is cut into segments says how, in one way.
// Errors: INVALID_ARGUMENT (FIELD_CONFLICT).
absl::Status CheckSegments(bool segmented, const std::optional<SegmentOffsets>& segments,
                           const std::optional<Keys>& keys);

}  // namespace internal
}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_SEGMENTS_H_
