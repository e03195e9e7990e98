// One request in the server's own words: what comes in (Message, Chunk) and what goes out (Reply, Result). What is
// asked for is a Spec (kernels/spec.h). The wire's messages are turned into these, and back, in rpc/codec.h alone.
#ifndef PREFIXD_SERVER_REQUEST_H_
#define PREFIXD_SERVER_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "kernels/spec.h"
#include "kernels/types.h"
#include "proto/payload.h"
#include "proto/timing.h"

namespace prefixd {

// A reply message carries at most this much payload, so that callers with gRPC's default limit of 4 MiB can read it.
inline constexpr uint64_t kMaxReplyPayloadBytes = uint64_t{1} << 20;

enum class CallShape { kUnary, kStream };

// Elements that came in one message, where the wire has them.
struct Chunk {
  Payload values;
  std::optional<Payload> mask;
  std::optional<uint64_t> first_item;  // As the caller states it, to be checked.
};

// One message of a request. The first, and only it, has a spec.
struct Message {
  std::optional<Spec> spec;
  std::string request_id;  // Empty: the server makes one up.
  Chunk chunk;
  bool announces_end = false;  // In the first: one that ends the stream will come.
  bool ends = false;           // It is that one.
  uint64_t held_bytes = 0;     // Memory during the call: the message as received, and what is copied out of it.
};

// A part of the answer; together at most kMaxReplyPayloadBytes.
struct Reply {
  Payload values;
  Payload indices;
  uint64_t num_kept = 0;  // Compact: elements kept so far, these included.
};

// How a request ended.
struct Result {
  absl::Status status;
  std::string request_id;
  Timing timing;
  uint64_t num_kept = 0;  // Compact.
  // Reduce.
  DType dtype = DType::kI32;  // The value's.
  Value value;
  std::optional<uint64_t> index;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_REQUEST_H_
