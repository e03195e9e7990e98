// Compact, as the client has it. Client (client.h) is where callers find it.
#ifndef PREFIXD_CLIENT_COMPACT_H_
#define PREFIXD_CLIENT_COMPACT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
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

// The most elements whose request and whose reply both fit one message of 1 MiB. In the namespace of its spec, where
// templates find it.
inline size_t ChunkItems(const CompactSpec& spec) {
  const size_t extra_bytes = spec.return_indices ? SizeOf(spec.index_dtype) : spec.predicate ? 0 : 1;
  const size_t items = client::kMaxPayloadBytes / (SizeOf(spec.dtype) + extra_bytes);
  return items / 8 * 8;  // So that each chunk of a mask of bits begins with a whole byte.
}

namespace client {

using prefixd::CompactSpec;
using prefixd::MaskKind;
using prefixd::Predicate;
using prefixd::Timing;

// The elements for which `element comparison value` holds, by IEEE rules: a comparison with NaN is false, but != is
// true. kIsNan and kIsFinite have no use for the value; kInRange is value <= element < end.
template <class T>
struct Where {
  Comparison comparison = Comparison::kGreater;
  T value = {};
  T end = {};  // kInRange.
};

// What selects of a resident array: a predicate, or a resident mask.
template <class T>
using Selector = std::variant<Where<T>, ArrayPart>;

struct CompactOptions {
  MaskKind mask_kind = MaskKind::kBytes;  // Where a mask selects.
  bool invert = false;                    // Keeps what the selector rejects.
  bool return_indices = false;            // Fills CompactResult::indices.
  // How many are kept of each segment is counted, in CompactResult::counts. Values on this side of up to 1 MiB, or
  // resident ones.
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};  // In place of segments: of each run of equal keys.
  Algorithm algorithm = {};       // {}: the server chooses.
};

template <class T>
struct CompactResult {
  std::vector<T> values;
  std::vector<uint64_t> indices;  // Where the kept elements stood in the array, if asked for.
  std::vector<uint64_t> counts;   // By segments or keys: how many of each were kept.
  Timing timing;
};

struct CompactReply {
  std::string values;            // The next kept elements, unless the spec wants none.
  std::string indices;           // And their indices, of the spec's index_dtype, if asked for.
  uint64_t count = 0;            // Elements kept so far, these included.
  std::optional<Timing> timing;  // In the last reply.
};

using CompactStream = Stream<CompactReply>;
using CompactSink = absl::FunctionRef<absl::Status(Bytes values, Bytes indices)>;

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

// A compact that may be of segments.
struct CompactPart : CompactSpec {
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};
};

// What it leaves on this side, beside its elements.
struct CompactEnd {
  Timing timing;
  std::vector<uint64_t> counts;
};

absl::StatusOr<CompactEnd> CompactBytes(const Connection& connection, const CompactPart& part, Bytes values, Bytes mask,
                                        Room value_room, Room index_room, const CallOptions& call);
absl::StatusOr<Timing> CompactChunks(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
                                     CompactSink sink, const CallOptions& call);
absl::StatusOr<std::unique_ptr<CompactStream>> OpenCompact(const Connection& connection, const CompactSpec& spec,
                                                           const CallOptions& call);

// As Client::RunChunks.
absl::StatusOr<Timing> RunChunks(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call);

// As Client::RunOnArrays.
absl::StatusOr<ResidentReply> RunOnArrays(const CompactSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);
absl::StatusOr<ResidentReply> RunOnArrays(const CompactPart& part, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);

template <class T>
Predicate PredicateOf(const Where<T>& where) {
  return {where.comparison, Value::Of(where.value), Value::Of(where.end)};
}

// What of the options is the spec's, and what comes beside it.
inline CompactPart PartOf(CompactSpec spec, const CompactOptions& options) {
  spec.mask_kind = options.mask_kind;
  spec.invert = options.invert;
  spec.return_indices = options.return_indices;
  spec.algorithm = options.algorithm;
  CompactPart part = {spec};
  TakeCuts(options, &part);
  return part;
}

// Errors: INVALID_ARGUMENT (MASK_LENGTH) unless there is one byte, or bit, an element.
absl::Status CheckMaskLength(size_t mask_bytes, size_t num_items, MaskKind kind);

// `spec` says what selects.
template <class T>
absl::StatusOr<CompactResult<T>> Compact(const Connection& connection, absl::Span<const T> values, CompactSpec spec,
                                         Bytes mask, const CompactOptions& options, const CallOptions& call) {
  spec.dtype = kDTypeOf<T>;
  spec.num_items = values.size();
  CompactResult<T> result;
  const auto value_room = [&](size_t size_bytes) { return Grow(size_bytes, &result.values); };
  const auto index_room = [&](size_t size_bytes) { return Grow(size_bytes, &result.indices); };
  PREFIXD_ASSIGN_OR_RETURN(CompactEnd end, CompactBytes(connection, PartOf(spec, options), AsBytes(values), mask,
                                                        value_room, index_room, call));
  result.counts = std::move(end.counts);
  result.timing = std::move(end.timing);
  return result;
}

template <class T>
absl::StatusOr<CompactResult<T>> Compact(const Connection& connection, absl::Span<const T> values,
                                         const Where<T>& where, const CompactOptions& options,
                                         const CallOptions& call) {
  const CompactSpec spec = {.predicate = PredicateOf(where)};
  return Compact(connection, values, spec, {}, options, call);
}

template <class T>
absl::StatusOr<CompactResult<T>> Compact(const Connection& connection, absl::Span<const T> values,
                                         absl::Span<const uint8_t> mask, const CompactOptions& options,
                                         const CallOptions& call) {
  PREFIXD_RETURN_IF_ERROR(CheckMaskLength(mask.size(), values.size(), options.mask_kind));
  return Compact(connection, values, CompactSpec{}, AsBytes(mask), options, call);
}

template <class T>
CompactPart SpecOf(const Selector<T>& select, const CompactOptions& options, uint64_t num_items) {
  CompactSpec spec = {.dtype = kDTypeOf<T>};
  if (const auto* const where = std::get_if<Where<T>>(&select)) spec.predicate = PredicateOf(*where);
  spec.num_items = num_items;
  return PartOf(spec, options);
}

template <class T>
std::optional<ArrayPart> MaskOf(const Selector<T>& select) {
  const auto* const mask = std::get_if<ArrayPart>(&select);
  return mask != nullptr ? std::optional(*mask) : std::nullopt;
}

template <class T>
absl::StatusOr<CompactResult<T>> Compact(const ArrayPart& values, const Selector<T>& select,
                                         const CompactOptions& options, const CallOptions& call) {
  CompactResult<T> result;
  const auto take = [&](Pieces kept, Pieces indices) {
    const absl::Status status = Append(kept, &result.values);
    return status.ok() ? Append(indices, &result.indices) : status;
  };
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply, RunOnArrays(SpecOf<T>(select, options, values.num_items()),
                                                            {.values = values, .mask = MaskOf<T>(select)}, take, call));
  result.counts = std::move(reply.segment_counts);
  result.timing = std::move(reply.timing);
  return result;
}

template <class T>
absl::StatusOr<ResidentCompactResult> CompactInto(const ArrayPart& values, const Selector<T>& select,
                                                  const CompactTargets& to, const CompactOptions& options,
                                                  const CallOptions& call) {
  CompactPart spec = SpecOf<T>(select, options, values.num_items());
  spec.return_values = to.values.has_value();
  spec.return_indices = to.indices.has_value();
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply, RunOnArrays(spec,
                                                            {.values = values,
                                                             .mask = MaskOf<T>(select),
                                                             .values_to = to.values,
                                                             .indices_to = to.indices,
                                                             .counts_to = to.counts},
                                                            NoSink, call));
  return ResidentCompactResult{reply.count,
                               std::move(reply.values),
                               std::move(reply.indices),
                               std::move(reply.timing),
                               std::move(reply.counts),
                               std::move(reply.segment_counts)};
}

}  // namespace internal
}  // namespace client
}  // namespace prefixd

#endif  // PREFIXD_CLIENT_COMPACT_H_
