// Scan, as the client has it. Client (client.h) is where callers find it.
#ifndef PREFIXD_CLIENT_SCAN_H_
#define PREFIXD_CLIENT_SCAN_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "client/array.h"
#include "client/carry.h"
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
inline size_t ChunkItems(const ScanSpec& spec) {
  const size_t index_bytes = spec.return_indices ? SizeOf(spec.index_dtype) : 0;
  return client::kMaxPayloadBytes / std::max(SizeOf(spec.dtype), SizeOf(spec.output()) + index_bytes);
}

namespace client {

using prefixd::Axis;
using prefixd::Precision;
using prefixd::ScanSpec;
using prefixd::Timing;

// A linear recurrence's, one for each element: on this side, beside values that are, or in an array.
// Owns: nothing. What it names outlives the call.
template <class T>
using Coefficients = std::variant<absl::Span<const T>, ArrayPart>;

template <class T>
struct ScanOptions {
  Op op = Op::kSum;
  // kWide: sums of float are made in double, and of double in twice its precision; each result is rounded once.
  Precision precision = Precision::kNative;
  ScanKind kind = ScanKind::kInclusive;
  std::optional<T> init = {};  // Absent: the operator's identity.
  bool reverse = false;        // From the last element to the first; arrays of up to 1 MiB.
  Algorithm algorithm = {};    // {}: the server chooses.
  // The values are a matrix, and each of its rows or columns is scanned on its own; columns of arrays of up to 1 MiB.
  std::optional<Axis> axis = {};
  // Each segment of the values is scanned on its own: values on this side of up to 1 MiB. Not with an axis.
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};  // In place of segments.
  // Op::kLinearRecurrence, y[i] = coefficients[i] * y[i-1] + values[i], where y[-1] is init: one of these.
  std::optional<Coefficients<T>> coefficients = {};
  std::optional<T> coefficient = {};  // For all elements.
  // One result more: those of the exclusive scan, and its carry behind them; if reversed, in front of them. Of one
  // array; not in parts.
  bool include_initial = false;
  // Fills ScanResult::indices: where each result stands among the values, or along an axis in its row or column. Of
  // Op::kMin and kMax to T, inclusive, without init. Of elements that are equal the first; or, if last_index, the last.
  bool return_indices = false;
  bool last_index = false;
  // The values are a part of an array: carry.h. Other options are the same for every part; the length may differ.
  std::optional<Carry> carry_in = {};  // From the part before, whose elements stand in front of these. Absent: none do.
  bool return_carry = false;           // For the part behind.
};

template <class T>
struct ScanResult {
  std::vector<T> values;
  Timing timing;
  std::optional<Carry> carry;     // If return_carry.
  std::vector<uint64_t> indices;  // If return_indices.
};

struct ScanReply {
  std::string values;            // The next elements of the result, of the output type.
  std::optional<Timing> timing;  // In the last reply.
  std::string indices;           // The elements', of the spec's index_dtype, if asked for.
};

using ScanStream = Stream<ScanReply>;
using ScanSink = absl::FunctionRef<absl::Status(Bytes values)>;

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

// Where coefficients are that do not come with chunks: in an array, if there is one, or in memory.
struct CoefficientsPlace {
  std::optional<ArrayPart> array = {};
  Bytes bytes = {};
};

// A scan of a part of an array, or of segments, or with coefficients.
struct ScanPart : ScanSpec {
  std::optional<Carry> carry_in = {};
  bool return_carry = false;
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};
  CoefficientsPlace coefficients = {};
};

template <class T>
CoefficientsPlace PlaceOf(const std::optional<Coefficients<T>>& coefficients) {
  if (!coefficients) return {};
  if (const auto* const array = std::get_if<ArrayPart>(&*coefficients)) return {.array = *array};
  return {.bytes = AsBytes(std::get<absl::Span<const T>>(*coefficients))};
}

// What it leaves on this side, beside its elements.
struct ScanEnd {
  Timing timing;
  std::optional<Carry> carry;
};

absl::StatusOr<ScanEnd> ScanBytes(const Connection& connection, const ScanPart& part, Bytes values, Room value_room,
                                  Room index_room, const CallOptions& call);
absl::StatusOr<Timing> ScanChunks(const Connection& connection, const ScanSpec& spec, ChunkSource& source,
                                  ScanSink sink, const CallOptions& call);
absl::StatusOr<std::unique_ptr<ScanStream>> OpenScan(const Connection& connection, const ScanSpec& spec,
                                                     const CallOptions& call);

// As Client::RunChunks.
absl::StatusOr<Timing> RunChunks(const Connection& connection, const ScanSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call);

// As Client::RunOnArrays.
absl::StatusOr<ResidentReply> RunOnArrays(const ScanSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);
absl::StatusOr<ResidentReply> RunOnArrays(const ScanPart& part, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);

template <class T, class Out>
ScanPart PartOf(const ScanOptions<Out>& options, uint64_t num_items) {
  ScanPart part = {{.dtype = kDTypeOf<T>,
                    .out_dtype = kOutDType<T, Out>,
                    .op = options.op,
                    .precision = options.precision,
                    .kind = options.kind,
                    .init = ToValue(options.init),
                    .reverse = options.reverse,
                    .algorithm = options.algorithm,
                    .num_items = num_items,
                    .axis = options.axis,
                    .has_coefficients = options.coefficients.has_value(),
                    .coefficient = ToValue(options.coefficient),
                    .include_initial = options.include_initial,
                    .return_indices = options.return_indices,
                    .last_index = options.last_index},
                   options.carry_in,
                   options.return_carry};
  TakeCuts(options, &part);
  part.coefficients = PlaceOf(options.coefficients);
  return part;
}

template <class T, class Out>
absl::StatusOr<ScanResult<Out>> Scan(const Connection& connection, absl::Span<const T> values,
                                     const ScanOptions<Out>& options, const CallOptions& call) {
  ScanResult<Out> result;
  result.values.reserve(values.size() + (options.include_initial ? 1 : 0));
  if (options.return_indices) result.indices.reserve(values.size());
  const auto value_room = [&](size_t size_bytes) { return Grow(size_bytes, &result.values); };
  const auto index_room = [&](size_t size_bytes) { return Grow(size_bytes, &result.indices); };
  PREFIXD_ASSIGN_OR_RETURN(ScanEnd end, ScanBytes(connection, PartOf<T>(options, values.size()), AsBytes(values),
                                                  value_room, index_room, call));
  result.timing = std::move(end.timing);
  result.carry = std::move(end.carry);
  return result;
}

template <class T, class Out>
absl::StatusOr<ScanResult<Out>> Scan(const ArrayPart& values, const ScanOptions<Out>& options,
                                     const CallOptions& call) {
  ScanResult<Out> result;
  const auto take = [&](Pieces elements, Pieces indices) {
    const absl::Status status = Append(elements, &result.values);
    return status.ok() ? Append(indices, &result.indices) : status;
  };
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply,
                           RunOnArrays(PartOf<T>(options, values.num_items()), {.values = values}, take, call));
  result.timing = std::move(reply.timing);
  result.carry = std::move(reply.carry);
  return result;
}

template <class T, class Out>
absl::StatusOr<ResidentResult> ScanInto(const ArrayPart& values, const ScanTargets& to, const ScanOptions<Out>& options,
                                        const CallOptions& call) {
  ScanPart part = PartOf<T>(options, values.num_items());
  part.return_indices = to.indices.has_value();
  PREFIXD_ASSIGN_OR_RETURN(
      ResidentReply reply,
      RunOnArrays(part, {.values = values, .values_to = to.values, .indices_to = to.indices}, NoSink, call));
  return ResidentResult{reply.count, std::move(reply.values), std::move(reply.timing), std::move(reply.carry),
                        std::move(reply.indices)};
}

}  // namespace internal
}  // namespace client
}  // namespace prefixd

#endif  // PREFIXD_CLIENT_SCAN_H_
