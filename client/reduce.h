// Reduce, as the client has it. Client (client.h) is where callers find it.
#ifndef PREFIXD_CLIENT_REDUCE_H_
#define PREFIXD_CLIENT_REDUCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "client/array.h"
#include "client/chunk.h"
#include "client/options.h"
#include "client/segments.h"
#include "client/stream.h"
#include "client/typed.h"
#include "kernels/spec.h"
#include "kernels/types.h"
#include "proto/timing.h"

namespace prefixd {

// The most elements whose request fits one message of 1 MiB. In the namespace of its spec, where templates find it.
inline size_t ChunkItems(const ReduceSpec& spec) { return client::kMaxPayloadBytes / SizeOf(spec.dtype); }

namespace client {

using prefixd::Axis;
using prefixd::Precision;
using prefixd::ReduceSpec;
using prefixd::Timing;

template <class T>
struct ReduceOptions {
  Op op = Op::kSum;
  Precision precision = Precision::kNative;  // As in ScanOptions.
  std::optional<T> init = {};                // Combined in front of the first element.
  Algorithm algorithm = {};                  // {}: the server chooses.
  // The values are a matrix, and each of its rows or columns is reduced on its own. Columns are resident, or of 1 MiB
  // at most.
  std::optional<Axis> axis = {};
  // Each segment of the values is reduced on its own; one without elements has init, or the identity. Values as of
  // columns, and not with an axis.
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};       // In place of segments: each run of equal keys has a value.
  bool return_keys = false;            // Also the key of each run.
  std::optional<Target> keys_to = {};  // ReduceInto: where they go, if return_keys. Absent: they come to this side.
};

template <class T>
struct ReduceResult {
  T value = {};
  std::vector<T> values;          // Along an axis, or of segments: one for each, and no value.
  uint64_t count = 0;             // Elements reduced.
  std::optional<uint64_t> index;  // MIN and MAX: the first element with that value; absent where it is not one's.
  Timing timing;
  std::string keys;  // If return_keys: that of each run, packed.

  // The same as values of their type.
  template <class K>
  std::vector<K> KeysAs() const {
    std::vector<K> typed(keys.size() / sizeof(K));
    std::copy_n(keys.data(), typed.size() * sizeof(K), reinterpret_cast<char*>(typed.data()));
    return typed;
  }
};

// What ReduceInto leaves: the value on this side, and in an array. Several values are only there.
template <class T>
struct ResidentReduceResult {
  T value = {};
  uint64_t count = 0;             // As in ReduceResult.
  std::optional<uint64_t> index;  // As in ReduceResult.
  Timing timing;
  Array values;           // Made for the value or values, if that was asked for.
  Array keys;             // Likewise for the keys.
  std::string keys_here;  // If return_keys and no keys_to: as ReduceResult::keys.
};

struct ReduceReply {
  Value value;                    // A value of the output type.
  std::string values;             // Along an axis, or of segments: one for each, of the output type, and no value.
  std::string keys;               // As in ReduceResult.
  uint64_t count = 0;             // Elements reduced.
  std::optional<uint64_t> index;  // As in ReduceResult.
  Timing timing;
};

// Has one reply, at the end: Read blocks until the call has ended. Along rows it has 1 MiB of values at most.
using ReduceStream = Stream<ReduceReply>;

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

// A reduce that may be of segments.
struct ReducePart : ReduceSpec {
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};
};

absl::StatusOr<ReduceReply> ReduceBytes(const Connection& connection, const ReducePart& part, Bytes values,
                                        const CallOptions& call);
absl::StatusOr<ReduceReply> ReduceChunks(const Connection& connection, const ReduceSpec& spec, ChunkSource& source,
                                         const CallOptions& call);
absl::StatusOr<std::unique_ptr<ReduceStream>> OpenReduce(const Connection& connection, const ReduceSpec& spec,
                                                         const CallOptions& call);

// As Client::RunChunks.
absl::StatusOr<Timing> RunChunks(const Connection& connection, const ReduceSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call);

// As Client::RunOnArrays.
absl::StatusOr<ResidentReply> RunOnArrays(const ReduceSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);
absl::StatusOr<ResidentReply> RunOnArrays(const ReducePart& part, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);

template <class T, class Out>
ReducePart PartOf(const ReduceOptions<Out>& options, uint64_t num_items) {
  ReducePart part = {{.dtype = kDTypeOf<T>,
                      .out_dtype = kOutDType<T, Out>,
                      .op = options.op,
                      .precision = options.precision,
                      .init = ToValue(options.init),
                      .algorithm = options.algorithm,
                      .num_items = num_items,
                      .axis = options.axis,
                      .return_keys = options.return_keys}};
  TakeCuts(options, &part);
  return part;
}

template <class T, class Out>
absl::StatusOr<ReduceResult<Out>> Reduce(const Connection& connection, absl::Span<const T> values,
                                         const ReduceOptions<Out>& options, const CallOptions& call) {
  const ReducePart part = PartOf<T>(options, values.size());
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, ReduceBytes(connection, part, AsBytes(values), call));
  ReduceResult<Out> result = {
      .value = reply.value.As<Out>(), .count = reply.count, .index = reply.index, .timing = std::move(reply.timing)};
  result.values.resize(reply.values.size() / sizeof(Out));
  std::copy_n(reply.values.data(), reply.values.size(), reinterpret_cast<char*>(result.values.data()));
  result.keys = std::move(reply.keys);
  return result;
}

template <class T, class Out>
absl::StatusOr<ReduceResult<Out>> Reduce(const ArrayPart& values, const ReduceOptions<Out>& options,
                                         const CallOptions& call) {
  ReduceResult<Out> result;
  const auto take = [&](Pieces elements, Pieces keys) {
    for (const std::string_view piece : keys) result.keys.append(piece);
    return Append(elements, &result.values);
  };
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply,
                           RunOnArrays(PartOf<T>(options, values.num_items()), {.values = values}, take, call));
  result.value = reply.value.As<Out>();
  result.count = reply.count;
  result.index = reply.index;
  result.timing = std::move(reply.timing);
  return result;
}

template <class T, class Out>
absl::StatusOr<ResidentReduceResult<Out>> ReduceInto(const ArrayPart& values, const Target& to,
                                                     const ReduceOptions<Out>& options, const CallOptions& call) {
  std::string keys_here;
  const auto take = [&](Pieces /*values*/, Pieces keys) {
    for (const std::string_view piece : keys) keys_here.append(piece);
    return absl::OkStatus();
  };
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply,
                           RunOnArrays(PartOf<T>(options, values.num_items()),
                                       {.values = values, .values_to = to, .indices_to = options.keys_to}, take, call));
  return ResidentReduceResult<Out>{
      reply.value.As<Out>(),    reply.count,         reply.index, std::move(reply.timing), std::move(reply.values),
      std::move(reply.indices), std::move(keys_here)};
}

}  // namespace internal
}  // namespace client
}  // namespace prefixd

#endif  // PREFIXD_CLIENT_REDUCE_H_
