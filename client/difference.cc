#include "client/difference.h"

#include "client/resident_call.h"
#include "client/values_call.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_difference.h"

namespace prefixd::client {

using internal::DifferencePart;

template <>
struct Contract<DifferencePart> {
  using Request = v1::DifferenceRequest;
  using Response = v1::DifferenceResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Difference";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamDifference";

  static void Complete(const DifferencePart& part, Request* request) { internal::CutsToWire(part, request); }
};

namespace internal {

absl::StatusOr<Timing> DifferenceBytes(const Connection& connection, const DifferencePart& part, Bytes values,
                                       Room room, const CallOptions& call) {
  return CallForValues(connection, part, values, room, call);
}

absl::StatusOr<Timing> DifferenceChunks(const Connection& connection, const DifferenceSpec& spec, ChunkSource& source,
                                        DifferenceSink sink, const CallOptions& call) {
  return CallForValues(connection, DifferencePart{spec}, source, sink, call);
}

absl::StatusOr<std::unique_ptr<DifferenceStream>> OpenDifference(const Connection& connection,
                                                                 const DifferenceSpec& spec, const CallOptions& call) {
  return OpenStream<ValuesStream<DifferencePart, DifferenceReply>>(connection, DifferencePart{spec}, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const DifferenceSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call) {
  return RunForValues(connection, DifferencePart{spec}, source, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const DifferenceSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  return RunOnArrays(DifferencePart{spec, places.segments, places.keys}, places, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const DifferencePart& part, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  return RunResidentForValues(part, places, sink, call);
}

}  // namespace internal
}  // namespace prefixd::client
