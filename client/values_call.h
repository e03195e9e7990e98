// Calls whose result has as many elements as their values, such as a scan's: any such primitive is this with its own
// spec. Private to the library.
//
// Needs: a Contract<Spec>; a Spec with output(); a Reply with values and timing.
#ifndef PREFIXD_CLIENT_VALUES_CALL_H_
#define PREFIXD_CLIENT_VALUES_CALL_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "client/caller_stream.h"
#include "client/chunk_call.h"
#include "client/memory_source.h"

namespace prefixd::client {

// take: gets each reply, an ArrayReply, and returns a status.
template <class Spec, class Take>
absl::StatusOr<Timing> CallForValues(const Connection& connection, const Spec& spec, ChunkSource& source,
                                     const Lender& lender, const CallOptions& call, Take take) {
  const size_t item_bytes = SizeOf(spec.output());
  Timing timing;
  uint64_t received_bytes = 0, index_bytes = 0;
  const auto on_reply = [&](ArrayReply<typename Contract<Spec>::Response>& reply) {
    timing = TimingOf(reply.message).value_or(std::move(timing));
    received_bytes += reply.values.size();
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, item_bytes));
    index_bytes += reply.indices.size();
    PREFIXD_RETURN_IF_ERROR(CheckLength("indices", index_bytes, received_bytes / item_bytes * IndexBytes(spec)));
    return take(reply);
  };
  PREFIXD_ASSIGN_OR_RETURN(const uint64_t sent_bytes, CallWithChunks(connection, spec, source, lender, call, on_reply));
  const uint64_t num_results = NumResults(spec, sent_bytes / SizeOf(spec.dtype));
  PREFIXD_RETURN_IF_ERROR(CheckLength("values", received_bytes, num_results * item_bytes));
  return timing;
}

// Lends the values to gRPC, and copies the results to where `room` says.
template <class Spec>
absl::StatusOr<Timing> CallForValues(const Connection& connection, const Spec& spec, Bytes values, internal::Room room,
                                     const CallOptions& call) {
  MemorySource source(values, SizeOf(spec.dtype));
  return CallForValues(connection, spec, source, Lender(connection), call,
                       [&](const auto& reply) { return CopyInto(room, reply.values); });
}

// Copies the source's chunks, and gives the results to the sink.
template <class Spec, class Sink>
absl::StatusOr<Timing> CallForValues(const Connection& connection, const Spec& spec, ChunkSource& source, Sink sink,
                                     const CallOptions& call) {
  Joined joined;
  return CallForValues(connection, spec, source, Lender(), call,
                       [&](const auto& reply) { return sink(joined(reply.values)); });
}

// As above, but gives the sink the results in the pieces in which they came.
template <class Spec>
absl::StatusOr<Timing> RunForValues(const Connection& connection, const Spec& spec, ChunkSource& source,
                                    ResultSink sink, const CallOptions& call) {
  return CallForValues(connection, spec, source, Lender(), call,
                       [&](const auto& reply) { return sink(reply.values.parts(), reply.indices.parts()); });
}

template <class Spec, class Reply>
class ValuesStream : public CallerStream<Spec, Reply> {
 public:
  using CallerStream<Spec, Reply>::CallerStream;

  bool Read(Reply* reply) override {
    ArrayReply<typename Contract<Spec>::Response> read;
    if (!this->stream().Read(&read)) return false;
    Copy(read.values, &reply->values);
    if constexpr (requires { reply->indices; }) Copy(read.indices, &reply->indices);
    reply->timing = TimingOf(read.message);
    return true;
  }
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_VALUES_CALL_H_
