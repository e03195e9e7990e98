#include "client/compact.h"

#include <algorithm>

#include "client/caller_stream.h"
#include "client/chunk_call.h"
#include "client/memory_source.h"
#include "client/resident_call.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_compact.h"

namespace prefixd::client {

using internal::CompactPart;

template <>
struct Contract<CompactPart> {
  using Request = v1::CompactRequest;
  using Response = v1::CompactResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Compact";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamCompact";

  static void Complete(const CompactPart& part, Request* request) { internal::CutsToWire(part, request); }

  static absl::Status CheckBeside(const Chunk& chunk, const CompactPart& spec) {
    if (!spec.predicate) {
      return internal::CheckMaskLength(chunk.mask.size(), chunk.values.size() / SizeOf(spec.dtype), spec.mask_kind);
    }
    if (chunk.mask.empty()) return absl::OkStatus();
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "mask", "there is a mask beside a predicate");
  }
};

namespace {

// take: gets the values, the indices and the counts of each reply, as Payloads, and returns a status.
template <class Take>
absl::StatusOr<Timing> CallForKept(const Connection& connection, const CompactPart& spec, ChunkSource& source,
                                   const Lender& lender, const CallOptions& call, Take take) {
  const uint64_t value_bytes = spec.return_values ? SizeOf(spec.dtype) : 0;
  const uint64_t index_bytes = spec.return_indices ? SizeOf(spec.index_dtype) : 0;
  Timing timing;
  uint64_t kept = 0;
  const auto on_reply = [&](ArrayReply<v1::CompactResponse>& reply) -> absl::Status {
    timing = TimingOf(reply.message).value_or(std::move(timing));
    if (reply.message.count() < kept) return absl::InternalError("the server's count of kept elements went down");
    const uint64_t count = reply.message.count() - std::exchange(kept, reply.message.count());
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, SizeOf(spec.dtype)));
    PREFIXD_RETURN_IF_ERROR(CheckLength("values", reply.values.size(), count * value_bytes));
    PREFIXD_RETURN_IF_ERROR(CheckLength("indices", reply.indices.size(), count * index_bytes));
    return take(reply.values, reply.indices, reply.counts);
  };
  PREFIXD_RETURN_IF_ERROR(CallWithChunks(connection, spec, source, lender, call, on_reply).status());
  return timing;
}

// Errors: INTERNAL unless there is a count for each segment; of runs of keys, no more than elements.
absl::Status TakeCounts(const CompactPart& part, uint64_t num_items, const Payload& bytes,
                        std::vector<uint64_t>* counts) {
  if (!part.segmented) return absl::OkStatus();
  PREFIXD_RETURN_IF_ERROR(CheckWholeItems("counts", bytes, sizeof(uint64_t)));
  const uint64_t count = bytes.size() / sizeof(uint64_t);
  const uint64_t expected = part.segments ? internal::NumSegments(*part.segments) : std::min(count, num_items);
  PREFIXD_RETURN_IF_ERROR(CheckLength("counts", bytes.size(), expected * sizeof(uint64_t)));
  counts->resize(count);
  bytes.CopyTo(counts->data(), 0, bytes.size());
  return absl::OkStatus();
}

class KeptStream : public CallerStream<CompactPart, CompactReply> {
 public:
  using CallerStream::CallerStream;

  bool Read(CompactReply* reply) override {
    ArrayReply<v1::CompactResponse> read;
    if (!stream().Read(&read)) return false;
    Copy(read.values, &reply->values);
    Copy(read.indices, &reply->indices);
    reply->count = read.message.count();
    reply->timing = TimingOf(read.message);
    return true;
  }
};

}  // namespace

namespace internal {

absl::Status CheckMaskLength(size_t mask_bytes, size_t num_items, MaskKind kind) {
  if (mask_bytes == MaskBytes(kind, num_items)) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "MASK_LENGTH", "mask.inline.data",
               StrCat("the mask has ", mask_bytes, " bytes for ", num_items, " elements; expected one ",
                      kind == MaskKind::kBits ? "bit" : "byte", " an element"));
}

absl::StatusOr<CompactEnd> CompactBytes(const Connection& connection, const CompactPart& part, Bytes values, Bytes mask,
                                        Room value_room, Room index_room, const CallOptions& call) {
  MemorySource source(values, SizeOf(part.dtype), mask, part.mask_kind);
  CompactEnd end;
  const auto take = [&](const Payload& kept, const Payload& indices, const Payload& counts) {
    PREFIXD_RETURN_IF_ERROR(TakeCounts(part, values.size() / SizeOf(part.dtype), counts, &end.counts));
    PREFIXD_RETURN_IF_ERROR(CopyInto(value_room, kept));
    return CopyInto(index_room, indices);
  };
  PREFIXD_ASSIGN_OR_RETURN(end.timing, CallForKept(connection, part, source, Lender(connection), call, take));
  return end;
}

absl::StatusOr<Timing> CompactChunks(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
                                     CompactSink sink, const CallOptions& call) {
  Joined values;
  Joined indices;
  return CallForKept(connection, CompactPart{spec}, source, Lender(), call,
                     [&](const Payload& kept, const Payload& places, const Payload& /*counts*/) {
                       return sink(values(kept), indices(places));
                     });
}

absl::StatusOr<std::unique_ptr<CompactStream>> OpenCompact(const Connection& connection, const CompactSpec& spec,
                                                           const CallOptions& call) {
  return OpenStream<KeptStream>(connection, CompactPart{spec}, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call) {
  return CallForKept(connection, CompactPart{spec}, source, Lender(), call,
                     [&](const Payload& kept, const Payload& places, const Payload& /*counts*/) {
                       return sink(kept.parts(), places.parts());
                     });
}

absl::StatusOr<ResidentReply> RunOnArrays(const CompactSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  return RunOnArrays(CompactPart{spec, places.segments, places.keys}, places, sink, call);
}

absl::StatusOr<ResidentReply> RunOnArrays(const CompactPart& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  const uint64_t value_bytes = spec.return_values && !places.values_to ? SizeOf(spec.dtype) : 0;
  const uint64_t index_bytes = spec.return_indices && !places.indices_to ? SizeOf(spec.index_dtype) : 0;
  ResidentReply result;
  v1::CompactResponse last;
  uint64_t got_value_bytes = 0;
  uint64_t got_index_bytes = 0;
  const auto take = [&](ArrayReply<v1::CompactResponse>& reply) -> absl::Status {
    got_value_bytes += reply.values.size();
    got_index_bytes += reply.indices.size();
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, SizeOf(spec.dtype)));
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("indices", reply.indices, SizeOf(spec.index_dtype)));
    if (!places.counts_to) {
      PREFIXD_RETURN_IF_ERROR(TakeCounts(spec, places.values.num_items(), reply.counts, &result.segment_counts));
    }
    last = std::move(reply.message);
    return sink(reply.values.parts(), reply.indices.parts());
  };
  PREFIXD_RETURN_IF_ERROR(CallResident(spec, places, call, take));
  PREFIXD_RETURN_IF_ERROR(CheckLength("values", got_value_bytes, last.count() * value_bytes));
  PREFIXD_RETURN_IF_ERROR(CheckLength("indices", got_index_bytes, last.count() * index_bytes));
  result.count = last.count();
  result.timing = TimingOf(last).value_or(Timing());
  const std::shared_ptr<const Connection>& connection = places.values.connection();
  PREFIXD_ASSIGN_OR_RETURN(Placed values, PlacedOf(connection, places.values_to, last.values()));
  PREFIXD_ASSIGN_OR_RETURN(Placed indices, PlacedOf(connection, places.indices_to, last.indices()));
  PREFIXD_ASSIGN_OR_RETURN(Placed counts, PlacedOf(connection, places.counts_to, last.segment_counts()));
  result.counts = std::move(counts.made);
  result.values = std::move(values.made);
  result.indices = std::move(indices.made);
  return result;
}

}  // namespace internal
}  // namespace prefixd::client
