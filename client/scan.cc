#include "client/scan.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "client/memory_source.h"
#include "client/resident_call.h"
#include "client/values_call.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_array.h"
#include "proto/wire_scan.h"

namespace prefixd::client {

using internal::ScanPart;

template <>
struct Contract<ScanPart> {
  using Request = v1::ScanRequest;
  using Response = v1::ScanResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Scan";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamScan";

  static void Complete(const ScanPart& part, Request* request) {
    internal::CutsToWire(part, request);
    if (const auto& array = part.coefficients.array) {
      *request->mutable_coefficients()->mutable_array() = prefixd::ToWire(array->slice());
    }
  }

  static absl::Status CheckBeside(const Chunk& chunk, const ScanPart& part) {
    const bool come_with_chunks = part.has_coefficients && !part.coefficients.array;
    const size_t expected = come_with_chunks ? chunk.values.size() : 0;
    if (chunk.coefficients.size() == expected) return absl::OkStatus();
    return Error(absl::StatusCode::kInvalidArgument, "COEFFICIENTS_LENGTH", "coefficients.inline.data",
                 StrCat("the coefficients have ", chunk.coefficients.size(), " bytes for ", chunk.values.size(),
                        " bytes of values; expected ", expected));
  }
};

namespace internal {
namespace {

absl::Status CheckCarry(const ScanPart& part, const std::optional<Carry>& carry) {
  if (carry || !part.return_carry) return absl::OkStatus();
  return absl::InternalError("the server did not return the carry that was asked for");
}

}  // namespace

absl::StatusOr<ScanEnd> ScanBytes(const Connection& connection, const ScanPart& part, Bytes values, Room value_room,
                                  Room index_room, const CallOptions& call) {
  if (part.has_coefficients && !part.coefficients.array && part.coefficients.bytes.size() != values.size()) {
    return Error(absl::StatusCode::kInvalidArgument, "COEFFICIENTS_LENGTH", "coefficients.inline.data",
                 StrCat("there are ", part.coefficients.bytes.size() / SizeOf(part.dtype), " coefficients for ",
                        values.size() / SizeOf(part.dtype), " elements: expected one for each"));
  }
  MemorySource source(values, part.coefficients.bytes, SizeOf(part.dtype));
  ScanEnd end;
  const auto take = [&](auto& reply) {
    end.carry = std::move(reply.carry);
    PREFIXD_RETURN_IF_ERROR(CopyInto(value_room, reply.values));
    return CopyInto(index_room, reply.indices);
  };
  PREFIXD_ASSIGN_OR_RETURN(end.timing, CallForValues(connection, part, source, Lender(connection), call, take));
  PREFIXD_RETURN_IF_ERROR(CheckCarry(part, end.carry));
  return end;
}

absl::StatusOr<Timing> ScanChunks(const Connection& connection, const ScanSpec& spec, ChunkSource& source,
                                  ScanSink sink, const CallOptions& call) {
  if (spec.return_indices) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "spec.return_indices",
                 "this sink takes values alone: leave the indices out, or use RunChunks, whose sink takes them too");
  }
  return CallForValues(connection, ScanPart{spec}, source, sink, call);
}

absl::StatusOr<std::unique_ptr<ScanStream>> OpenScan(const Connection& connection, const ScanSpec& spec,
                                                     const CallOptions& call) {
  return OpenStream<ValuesStream<ScanPart, ScanReply>>(connection, ScanPart{spec}, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const ScanSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call) {
  return RunForValues(connection, ScanPart{spec}, source, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const ScanSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  ScanPart part = {spec};
  part.coefficients.array = places.coefficients;
  part.segments = places.segments;
  part.keys = places.keys;
  return RunOnArrays(part, places, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const ScanPart& part, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  if (part.has_coefficients && !part.coefficients.array) {
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "coefficients",
                 "the values are in an array of the server, and so have the coefficients to be");
  }
  PREFIXD_ASSIGN_OR_RETURN(ResidentReply reply, RunResidentForValues(part, places, sink, call));
  PREFIXD_RETURN_IF_ERROR(CheckCarry(part, reply.carry));
  return reply;
}

}  // namespace internal
}  // namespace prefixd::client
