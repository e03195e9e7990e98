// Difference, as the client has it. Client (client.h) is where callers find it.
#ifndef PREFIXD_CLIENT_DIFFERENCE_H_
#define PREFIXD_CLIENT_DIFFERENCE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
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
inline size_t ChunkItems(const DifferenceSpec& spec) { return client::kMaxPayloadBytes / SizeOf(spec.dtype); }

namespace client {

using prefixd::Axis;
using prefixd::DifferenceSpec;
using prefixd::Timing;

template <class T>
struct DifferenceOptions {
  std::optional<T> init = {};                   // The scan's. Absent: 0.
  bool reverse = false;                         // Undoes a reverse scan; arrays of up to 1 MiB.
  Algorithm algorithm = {};                     // {}: the server chooses.
  std::optional<Axis> axis = {};                // As in ScanOptions.
  std::optional<SegmentOffsets> segments = {};  // As in ScanOptions.
  std::optional<Keys> keys = {};                // As in ScanOptions.
};

template <class T>
struct DifferenceResult {
  std::vector<T> values;
  Timing timing;
};

struct DifferenceReply {
  std::string values;            // The next elements of the result.
  std::optional<Timing> timing;  // In the last reply.
};

using DifferenceStream = Stream<DifferenceReply>;
using DifferenceSink = absl::FunctionRef<absl::Status(Bytes values)>;

// ---- Implementation details below ---------------------------------------------------------------------------------
namespace internal {

// A difference that may be of segments.
struct DifferencePart : DifferenceSpec {
  std::optional<SegmentOffsets> segments = {};
  std::optional<Keys> keys = {};
};

absl::StatusOr<Timing> DifferenceBytes(const Connection& connection, const DifferencePart& part, Bytes values,
                                       Room room, const CallOptions& call);
absl::StatusOr<Timing> DifferenceChunks(const Connection& connection, const DifferenceSpec& spec, ChunkSource& source,
                                        DifferenceSink sink, const CallOptions& call);
absl::StatusOr<std::unique_ptr<DifferenceStream>> OpenDifference(const Connection& connection,
                                                                 const DifferenceSpec& spec, const CallOptions& call);

// As Client::RunChunks.
absl::StatusOr<Timing> RunChunks(const Connection& connection, const DifferenceSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call);

// As Client::RunOnArrays.
absl::StatusOr<ResidentReply> RunOnArrays(const DifferenceSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);
absl::StatusOr<ResidentReply> RunOnArrays(const DifferencePart& part, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call);

template <class T>
DifferencePart PartOf(const DifferenceOptions<T>& options, uint64_t num_items) {
  DifferencePart part = {{.dtype = kDTypeOf<T>,
                          .init = ToValue(options.init),
                          .reverse = options.reverse,
                          .algorithm = options.algorithm,
                          .num_items = num_items,
                          .axis = options.axis}};
  TakeCuts(options, &part);
  return part;
}

template <class T>
absl::StatusOr<DifferenceResult<T>> Difference(const Connection& connection, absl::Span<const T> values,
                                               const DifferenceOptions<T>& options, const CallOptions& call) {
  DifferenceResult<T> result;
  result.values.reserve(values.size());
  const auto room = [&](size_t size_bytes) { return Grow(size_bytes, &result.values); };
  PREFIXD_ASSIGN_OR_RETURN(result.timing,
                           DifferenceBytes(connection, PartOf(options, values.size()), AsBytes(values), room, call));
  return result;
}

template <class T>
absl::StatusOr<DifferenceResult<T>> Difference(const ArrayPart& values, const DifferenceOptions<T>& options,
                                               const CallOptions& call) {
  DifferenceResult<T> result;
  const auto take = [&](Pieces elements, Pieces /*indices*/) { return Append(elements, &result.values); };
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply,
                           RunOnArrays(PartOf(options, values.num_items()), {.values = values}, take, call));
  result.timing = std::move(reply.timing);
  return result;
}

template <class T>
absl::StatusOr<ResidentResult> DifferenceInto(const ArrayPart& values, const Target& to,
                                              const DifferenceOptions<T>& options, const CallOptions& call) {
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply, RunOnArrays(PartOf(options, values.num_items()),
                                                            {.values = values, .values_to = to}, NoSink, call));
  return ResidentResult{reply.count, std::move(reply.values), std::move(reply.timing)};
}

}  // namespace internal
}  // namespace client
}  // namespace prefixd

#endif  // PREFIXD_CLIENT_DIFFERENCE_H_
