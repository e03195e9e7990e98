// One request in the server's own words: what was asked (Spec), what comes in (Message, Chunk), what goes out (Reply,
// Result). The wire's messages are turned into these, and back, in codec.h alone.
#ifndef PREFIXD_SERVER_REQUEST_H_
#define PREFIXD_SERVER_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "kernels/types.h"
#include "proto/payload.h"

namespace prefixd {

// A reply message carries at most this much payload, so that callers with gRPC's default limit of 4 MiB can read it.
inline constexpr uint64_t kMaxReplyPayloadBytes = uint64_t{1} << 20;

struct ScanSpec {
  Op op = Op::kSum;
  ScanKind kind = ScanKind::kInclusive;
  std::optional<Value> init;
  bool reverse = false;

  friend bool operator==(const ScanSpec&, const ScanSpec&) = default;
};

struct ReduceSpec {
  Op op = Op::kSum;
  std::optional<Value> init;

  friend bool operator==(const ReduceSpec&, const ReduceSpec&) = default;
};

struct CompactSpec {
  Selector selector = Selector::kPredicate;
  Comparison comparison = Comparison::kLess;
  Value value;
  bool invert = false;
  bool return_values = true;
  bool return_indices = false;
  DType index_dtype = DType::kU64;

  friend bool operator==(const CompactSpec&, const CompactSpec&) = default;
};

struct Spec {
  DType dtype = DType::kI32;
  std::optional<DType> out_dtype;  // Of scan and reduce: of the result and the init. Absent: dtype.
  Algorithm algorithm;
  std::optional<uint64_t> num_items;  // Declared by the caller, to be checked.
  std::variant<ScanSpec, ReduceSpec, CompactSpec> detail;

  DType output() const { return out_dtype.value_or(dtype); }
  Primitive primitive() const { return static_cast<Primitive>(detail.index()); }
  // The operator; nullopt for a compact.
  std::optional<Op> op() const;

  friend bool operator==(const Spec&, const Spec&) = default;
};

// A run of elements, where the wire has them.
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
  uint64_t held_bytes = 0;  // While the call is under way: the message as it came, and what is copied out of it.
};

// A part of the answer; together at most kMaxReplyPayloadBytes.
struct Reply {
  Payload values;
  Payload indices;
  uint64_t num_kept = 0;  // Compact: elements kept so far, these included.
};

// Where the time went. A stage that was not measured is nullopt.
struct Timing {
  std::optional<int64_t> queue_ns;
  std::optional<int64_t> host_copy_ns;
  StageTimes device;
  int64_t server_total_ns = 0;
  std::string device_name;
  Algorithm algorithm;  // What ran.
  uint64_t num_items = 0;
  uint32_t batch_size = 1;  // Requests that shared the launch.
};

// How a request ended.
struct Result {
  absl::Status status;
  std::string request_id;
  Timing timing;
  uint64_t num_kept = 0;  // Compact.
  // Reduce.
  DType dtype = DType::kI32;  // Of value.
  Value value;
  std::optional<uint64_t> index;
};

inline std::optional<Op> Spec::op() const {
  if (const auto* scan = std::get_if<ScanSpec>(&detail)) return scan->op;
  if (const auto* reduce = std::get_if<ReduceSpec>(&detail)) return reduce->op;
  return std::nullopt;
}

}  // namespace prefixd

#endif  // PREFIXD_SERVER_REQUEST_H_
