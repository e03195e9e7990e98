// What a call asks and what it answers, for element types known only at run time. Elements travel as bytes: packed,
// little-endian. The typed calls of client.h are built on these.
#ifndef PREFIXD_CLIENT_SPEC_H_
#define PREFIXD_CLIENT_SPEC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/types.h"

namespace prefixd::client {

using Bytes = absl::Span<const std::byte>;

template <class T>
Bytes AsBytes(absl::Span<const T> elements) {
  return {reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)};
}
inline Bytes AsBytes(const std::string& packed) {
  return {reinterpret_cast<const std::byte*>(packed.data()), packed.size()};
}

// The most bytes of elements in one message, either way.
inline constexpr size_t kMaxPayloadBytes = size_t{1} << 20;

// out[i] = init op in[0] op ... op in[i] (inclusive), or to in[i-1] (exclusive).
struct ScanSpec {
  DType dtype = DType::kF32;
  std::optional<DType> out_dtype = {};  // Of out and init, in which the elements combine: an IsOutput. Absent: dtype.
  Op op = Op::kSum;
  ScanKind kind = ScanKind::kInclusive;
  std::optional<Value> init = {};          // Absent: the operator's identity.
  bool reverse = false;                    // From the last element to the first. Not in a stream.
  Algorithm algorithm = {};                // {}: the server chooses.
  std::optional<uint64_t> num_items = {};  // The whole array's length, where it is known; the server checks it.

  DType output() const { return out_dtype.value_or(dtype); }
};

// value = init op in[0] op ... op in[n-1]
struct ReduceSpec {
  DType dtype = DType::kF32;
  std::optional<DType> out_dtype = {};  // Of value and init, as ScanSpec's.
  Op op = Op::kSum;
  std::optional<Value> init = {};
  Algorithm algorithm = {};  // {}: the server chooses.
  std::optional<uint64_t> num_items = {};

  DType output() const { return out_dtype.value_or(dtype); }
};

// `element comparison value`, by IEEE rules. IS_NAN and IS_FINITE have no use for the value.
struct Predicate {
  Comparison comparison = Comparison::kGreater;
  Value value = {};
};

// How a mask is packed: a byte an element, kept where it is not 0; or a bit an element, least-significant bit first,
// restarting in each chunk, whose spare bits are ignored.
enum class MaskKind : uint8_t { kBytes, kBits };

// Keeps the elements for which the predicate or the mask holds, in their order.
struct CompactSpec {
  DType dtype = DType::kF32;
  std::optional<Predicate> predicate = {};  // Absent: each chunk comes with a mask.
  MaskKind mask_kind = MaskKind::kBytes;
  bool invert = false;          // Keeps the others instead.
  bool return_indices = false;  // Also the index of each kept element in the whole array, as u64.
  Algorithm algorithm = {};     // {}: the server chooses.
  std::optional<uint64_t> num_items = {};
};

// The most elements whose request and whose reply both fit one message: 1 MiB of them at most, fewer where a mask goes
// along or where indices may come back.
inline size_t ChunkItems(const ScanSpec& spec) {
  return kMaxPayloadBytes / std::max(SizeOf(spec.dtype), SizeOf(spec.output()));
}
inline size_t ChunkItems(const ReduceSpec& spec) { return kMaxPayloadBytes / SizeOf(spec.dtype); }
inline size_t ChunkItems(const CompactSpec& spec) {
  const size_t extra_bytes = spec.return_indices ? sizeof(uint64_t) : spec.predicate ? 0 : 1;
  const size_t items = kMaxPayloadBytes / (SizeOf(spec.dtype) + extra_bytes);
  return items / 8 * 8;  // So that each chunk of a mask of bits begins with a whole byte.
}

// Where the time of one call went on the server, in nanoseconds. Stages overlap, so they need not add up. One that was
// not measured is absent, not zero.
struct Timing {
  std::optional<int64_t> queue_ns;
  std::optional<int64_t> host_copy_ns;
  std::optional<int64_t> host_to_device_ns;
  std::optional<int64_t> kernel_ns;  // Of a batch: the whole batch's.
  std::optional<int64_t> device_to_host_ns;
  std::optional<int64_t> server_total_ns;
  std::string device;        // Such as "cpu (2 threads)".
  Algorithm algorithm = {};  // What really ran. {}: one that this client does not know.
  uint64_t launches = 0;
  uint64_t num_items = 0;  // Elements read.
  uint64_t num_bytes = 0;  // Bytes the kernels had to move.
  std::optional<double> kernel_gb_per_s;
  uint32_t batch_size = 0;
  uint32_t numerics_version = 0;  // Equal versions give equal bits.
};

// ---- Replies ------------------------------------------------------------------------------------------------------
struct ScanReply {
  std::string values;            // The next elements of the result, of the output type.
  std::optional<Timing> timing;  // In the last reply.
};

struct ReduceReply {
  Value value;                    // Of the output type.
  uint64_t count = 0;             // Elements reduced.
  std::optional<uint64_t> index;  // MIN and MAX: the first element with that value; absent where it is not one's.
  Timing timing;
};

struct CompactReply {
  std::string values;            // The next kept elements.
  std::string indices;           // And their indices, u64, if asked for.
  uint64_t count = 0;            // Elements kept so far, these included.
  std::optional<Timing> timing;  // In the last reply.
};

// ---- The server ---------------------------------------------------------------------------------------------------
struct Budget {
  uint64_t limit = 0;
  uint64_t used = 0;
};

// One served combination. Compaction has no op.
struct Capability {
  Primitive primitive = Primitive::kScan;
  DType dtype = DType::kF32;
  DType out_dtype = DType::kF32;
  std::optional<Op> op;
  Algorithm algorithm;  // Without its knobs.
};

// One algorithm of the server's device, and what it costs for n elements, in words: "n log n", "3 and more".
struct AlgorithmInfo {
  Primitive primitive = Primitive::kScan;
  Algorithm algorithm;  // Without its knobs; whether it takes them is:
  bool has_items_per_thread = false;
  bool has_padding = false;
  std::string work;
  std::string depth;
  std::string traffic;
  std::string launches;
  bool stable = false;         // A compact keeps the order.
  bool deterministic = false;  // The same bits in every run.
  uint64_t max_items = 0;      // Of one array. 0: no limit but memory.
  std::string source;
};

struct ServerInfo {
  std::string version;
  uint32_t numerics_version = 0;
  std::string device;
  uint64_t device_memory_bytes = 0;
  uint64_t device_memory_free_bytes = 0;
  uint32_t lanes = 0;
  uint64_t max_message_bytes = 0;
  uint64_t max_reply_payload_bytes = 0;
  Budget requests;
  Budget request_bytes;
  Budget staging_bytes;
  uint64_t uptime_seconds = 0;
  // Without those that this client does not know.
  std::vector<Capability> capabilities;
  std::vector<AlgorithmInfo> algorithms;  // Of each primitive the default first.
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_SPEC_H_
