// Resident arrays in words: what is asked for, what there is, and the parts of them that calls name. Values.
#ifndef PREFIXD_PROTO_ARRAY_INFO_H_
#define PREFIXD_PROTO_ARRAY_INFO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "kernels/types.h"

namespace prefixd {

// How long an array lives.
struct Lifetime {
  std::optional<absl::Duration> ttl;  // None: the store's default.
  bool renew_on_use = false;          // The ttl begins anew with each use, and when that ends.
};

// What is to be made.
struct ArraySpec {
  DType dtype = DType::kI32;
  std::vector<uint64_t> shape;  // Elements along one dimension or two, the last one contiguous.
  Lifetime lifetime = {};
};

// What an array is, as its caller is told.
struct ArrayInfo {
  std::string name;
  DType dtype = DType::kI32;
  std::vector<uint64_t> shape;
  uint64_t num_items = 0;
  uint64_t num_bytes = 0;  // Charged for the elements: a multiple of 256, and never none.
  absl::Time create_time;
  absl::Time expire_time;
  absl::Duration ttl;
  bool renew_on_use = false;
};

// A part of an array, as a caller names it.
struct ArraySlice {
  std::string name;
  uint64_t first_item = 0;
  std::optional<uint64_t> num_items = {};  // To the end if absent.

  friend bool operator==(const ArraySlice&, const ArraySlice&) = default;
};

// What such a part is.
struct SliceInfo {
  DType dtype = DType::kI32;
  uint64_t num_items = 0;
};

// Where a result goes.
struct Sink {
  enum class Kind : uint8_t { kInline, kArray, kNewArray };

  Kind kind = Kind::kInline;
  std::string field = {};  // Where it stands in the message, for errors.
  ArraySlice array = {};   // kArray: room for the result.
  ArraySpec to_make = {};  // kNewArray. Without a shape: as many elements as the result has. Its type is the result's.
};

// Where a call's operands are, and its results go, by name. What is not here is in messages.
struct PlaceNames {
  std::optional<ArraySlice> values = {};
  std::string values_field = "values.array";  // Where that stands in the message.
  std::optional<ArraySlice> mask = {};
  std::optional<ArraySlice> segment_offsets = {};
  std::optional<ArraySlice> keys = {};
  std::optional<ArraySlice> coefficients = {};
  Sink values_sink = {};
  Sink indices_sink = {};  // Or that of a reduce's keys.
  Sink counts_sink = {};

  bool AreInline() const {
    return !values && !mask && !segment_offsets && !keys && !coefficients && values_sink.kind == Sink::Kind::kInline &&
           indices_sink.kind == Sink::Kind::kInline && counts_sink.kind == Sink::Kind::kInline;
  }
};

}  // namespace prefixd

#endif  // PREFIXD_PROTO_ARRAY_INFO_H_
