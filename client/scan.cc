#include "client/scan.h"

#include "client/resident_call.h"
#include "client/values_call.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_scan.h"

namespace prefixd::client {

template <>
struct Contract<ScanSpec> {
  using Request = v1::ScanRequest;
  using Response = v1::ScanResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Scan";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamScan";
};

namespace internal {

absl::StatusOr<Timing> ScanBytes(const Connection& connection, const ScanSpec& spec, Bytes values, Room room,
                                 const CallOptions& call) {
  return CallForValues(connection, spec, values, room, call);
}

absl::StatusOr<Timing> ScanChunks(const Connection& connection, const ScanSpec& spec, ChunkSource& source,
                                  ScanSink sink, const CallOptions& call) {
  return CallForValues(connection, spec, source, sink, call);
}

absl::StatusOr<std::unique_ptr<ScanStream>> OpenScan(const Connection& connection, const ScanSpec& spec,
                                                     const CallOptions& call) {
  return OpenStream<ValuesStream<ScanSpec, ScanReply>>(connection, spec, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const ScanSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call) {
  return RunForValues(connection, spec, source, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const ScanSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  return RunResidentForValues(spec, places, sink, call);
}

}  // namespace internal
}  // namespace prefixd::client
