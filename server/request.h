// One request in the server's own words: what comes in (Message, Chunk) and what goes out (Reply, Result). What is
// asked for is an Operation (kernels/operation.h). The wire's messages are turned into these, and back, in rpc/codec.h
// alone.
#ifndef PREFIXD_SERVER_REQUEST_H_
#define PREFIXD_SERVER_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kernels/operation.h"
#include "kernels/types.h"
#include "proto/array_info.h"
#include "proto/payload.h"
#include "proto/timing.h"

namespace prefixd {

// A reply message carries at most this much payload, so that callers with gRPC's default limit of 4 MiB can read it.
inline constexpr uint64_t kMaxReplyPayloadBytes = uint64_t{1} << 20;

enum class CallShape { kUnary, kStream };

// Elements that came in one message, where the wire has them; or that a message asks for, and that are resident.
struct Chunk {
  Payload values;
  std::optional<Payload> mask;
  std::optional<Payload> coefficients;
  std::optional<Payload> offsets;  // u64, where segments begin.
  std::optional<Payload> keys;
  std::optional<uint64_t> first_item;  // As the caller states it, to be checked.
  uint64_t num_items = 0;              // Set once it is checked.
  uint64_t num_offsets = 0;            // Likewise, inline or resident; of keys, at most.
  bool has_work = false;               // Likewise: no elements may have results too.
};

// One message of a request. The first, and only it, says what to do, and what is resident.
struct Message {
  std::optional<Operation> operation;
  PlaceNames places;
  std::string request_id;  // Empty: the server makes one up.
  Chunk chunk;
  std::optional<Payload> carry_in;  // In the first, of a scan that goes on where another one ended.
  bool return_carry = false;        // Likewise: another one will go on.
  bool announces_end = false;       // In the first: one that ends the stream will come.
  bool ends = false;                // It is that one.
  uint64_t held_bytes = 0;          // Memory during the call: the message as received, and what is copied out of it.
};

// A part of the answer; together at most kMaxReplyPayloadBytes.
struct Reply {
  Payload values;
  Payload indices;        // Or the keys of a reduce.
  Payload counts;         // Compact: of each segment, how many were kept.
  uint64_t num_kept = 0;  // Compact: elements kept so far, these included.

  uint64_t size_bytes() const { return values.size() + indices.size() + counts.size(); }
};

// How a request ended.
struct Result {
  absl::Status status;
  std::string request_id;
  Timing timing;
  uint64_t num_kept = 0;  // Compact.
  // Reduce.
  DType dtype = DType::kI32;   // The value's.
  std::optional<Value> value;  // None where there are several:
  Payload row_values;          // those of rows that came in a stream, unless they went into an array.
  std::optional<uint64_t> index;
  // Where results are that did not go inline: the array that was made, or the part of one that was written.
  std::optional<ArrayInfo> new_values;
  std::optional<ArrayInfo> new_indices;  // Or the keys of a reduce.
  std::optional<ArrayInfo> new_counts;
  std::optional<ArraySlice> values;
  std::optional<ArraySlice> indices;
  std::optional<ArraySlice> counts;
  std::optional<Payload> carry_out;  // If it was asked for.
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_REQUEST_H_
