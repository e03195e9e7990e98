#include "client/compact.h"

#include "client/caller_stream.h"
#include "client/chunk_call.h"
#include "client/memory_source.h"
#include "client/resident_call.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_compact.h"

namespace prefixd::client {

template <>
struct Contract<CompactSpec> {
  using Request = v1::CompactRequest;
  using Response = v1::CompactResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Compact";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamCompact";

  static absl::Status CheckBeside(const Chunk& chunk, const CompactSpec& spec) {
    if (!spec.predicate) {
      return internal::CheckMaskLength(chunk.mask.size(), chunk.values.size() / SizeOf(spec.dtype), spec.mask_kind);
    }
    if (chunk.mask.empty()) return absl::OkStatus();
    return Error(absl::StatusCode::kInvalidArgument, "FIELD_CONFLICT", "mask", "there is a mask beside a predicate");
  }
};

namespace {

// take: gets the values and the indices of each reply, as Payloads, and returns a status.
template <class Take>
absl::StatusOr<Timing> CallForKept(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
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
    return take(reply.values, reply.indices);
  };
  PREFIXD_RETURN_IF_ERROR(CallWithChunks(connection, spec, source, lender, call, on_reply).status());
  return timing;
}

class KeptStream : public CallerStream<CompactSpec, CompactReply> {
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

absl::StatusOr<Timing> CompactBytes(const Connection& connection, const CompactSpec& spec, Bytes values, Bytes mask,
                                    Room value_room, Room index_room, const CallOptions& call) {
  MemorySource source(values, SizeOf(spec.dtype), mask, spec.mask_kind);
  return CallForKept(connection, spec, source, Lender(connection), call,
                     [&](const Payload& kept, const Payload& indices) {
                       PREFIXD_RETURN_IF_ERROR(CopyInto(value_room, kept));
                       return CopyInto(index_room, indices);
                     });
}

absl::StatusOr<Timing> CompactChunks(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
                                     CompactSink sink, const CallOptions& call) {
  Joined values;
  Joined indices;
  return CallForKept(connection, spec, source, Lender(), call,
                     [&](const Payload& kept, const Payload& places) { return sink(values(kept), indices(places)); });
}

absl::StatusOr<std::unique_ptr<CompactStream>> OpenCompact(const Connection& connection, const CompactSpec& spec,
                                                           const CallOptions& call) {
  return OpenStream<KeptStream>(connection, spec, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const CompactSpec& spec, ChunkSource& source,
                                 ResultSink sink, const CallOptions& call) {
  return CallForKept(connection, spec, source, Lender(), call,
                     [&](const Payload& kept, const Payload& places) { return sink(kept.parts(), places.parts()); });
}

absl::StatusOr<ResidentReply> RunOnArrays(const CompactSpec& spec, const ArrayPlaces& places, ResultSink sink,
                                          const CallOptions& call) {
  const uint64_t value_bytes = spec.return_values && !places.values_to ? SizeOf(spec.dtype) : 0;
  const uint64_t index_bytes = spec.return_indices && !places.indices_to ? SizeOf(spec.index_dtype) : 0;
  v1::CompactResponse last;
  uint64_t got_value_bytes = 0;
  uint64_t got_index_bytes = 0;
  const auto take = [&](ArrayReply<v1::CompactResponse>& reply) -> absl::Status {
    got_value_bytes += reply.values.size();
    got_index_bytes += reply.indices.size();
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, SizeOf(spec.dtype)));
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("indices", reply.indices, SizeOf(spec.index_dtype)));
    last = std::move(reply.message);
    return sink(reply.values.parts(), reply.indices.parts());
  };
  PREFIXD_RETURN_IF_ERROR(CallResident(spec, places, call, take));
  PREFIXD_RETURN_IF_ERROR(CheckLength("values", got_value_bytes, last.count() * value_bytes));
  PREFIXD_RETURN_IF_ERROR(CheckLength("indices", got_index_bytes, last.count() * index_bytes));
  ResidentReply result;
  result.count = last.count();
  result.timing = TimingOf(last).value_or(Timing());
  const std::shared_ptr<const Connection>& connection = places.values.connection();
  PREFIXD_ASSIGN_OR_RETURN(Placed values, PlacedOf(connection, places.values_to, last.values()));
  PREFIXD_ASSIGN_OR_RETURN(Placed indices, PlacedOf(connection, places.indices_to, last.indices()));
  result.values = std::move(values.made);
  result.indices = std::move(indices.made);
  return result;
}

}  // namespace internal
}  // namespace prefixd::client
