#include "client/reduce.h"

#include "client/caller_stream.h"
#include "client/chunk_call.h"
#include "client/memory_source.h"
#include "client/resident_call.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/wire_reduce.h"
#include "proto/wire_values.h"

namespace prefixd::client {

template <>
struct Contract<ReduceSpec> {
  using Request = v1::ReduceRequest;
  using Response = v1::ReduceResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Reduce";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamReduce";
};

namespace {

// The last response, whose value must be one of dtype.
absl::StatusOr<ReduceReply> ReplyOf(const v1::ReduceResponse& response, DType dtype) {
  if (!IsSupported(dtype)) return absl::UnimplementedError("this client has no values of this type");
  const absl::StatusOr<Value> value = DecodeScalar(response.value(), dtype, "value");
  v1::Scalar as_due;
  if (value.ok()) EncodeScalar(*value, dtype, &as_due);
  if (!value.ok() || as_due.value_case() != response.value().value_case()) {
    return absl::InternalError(StrCat("the server's value is not of type ", Name(dtype)));
  }
  ReduceReply reply;
  reply.value = *value;
  reply.count = response.count();
  if (response.has_index()) reply.index = response.index();
  reply.timing = FromWire(response.timing());
  return reply;
}

absl::StatusOr<ReduceReply> CallForValue(const Connection& connection, const ReduceSpec& spec, ChunkSource& source,
                                         const Lender& lender, const CallOptions& call) {
  v1::ReduceResponse last;
  const auto on_reply = [&](ArrayReply<v1::ReduceResponse>& reply) {
    last = std::move(reply.message);
    return absl::OkStatus();
  };
  PREFIXD_RETURN_IF_ERROR(CallWithChunks(connection, spec, source, lender, call, on_reply).status());
  return ReplyOf(last, spec.output());
}

class ValueStream : public CallerStream<ReduceSpec, ReduceReply> {
 public:
  using CallerStream::CallerStream;

  // The reply counts if the call ends well. gRPC allows Finish beside a Write on another thread.
  bool Read(ReduceReply* reply) override {
    if (std::exchange(read_, true)) return false;
    ArrayReply<v1::ReduceResponse> last;
    stream().Read(&last);
    if (!stream().Finish().ok()) return false;
    auto value = ReplyOf(last.message, stream().spec().output());
    if (!value.ok()) {
      stream().Fail(value.status());
      return false;
    }
    *reply = *std::move(value);
    return true;
  }

 private:
  bool read_ = false;
};

}  // namespace

namespace internal {

absl::StatusOr<ReduceReply> ReduceBytes(const Connection& connection, const ReduceSpec& spec, Bytes values,
                                        const CallOptions& call) {
  MemorySource source(values, SizeOf(spec.dtype));
  return CallForValue(connection, spec, source, Lender(connection), call);
}

absl::StatusOr<ReduceReply> ReduceChunks(const Connection& connection, const ReduceSpec& spec, ChunkSource& source,
                                         const CallOptions& call) {
  return CallForValue(connection, spec, source, Lender(), call);
}

absl::StatusOr<std::unique_ptr<ReduceStream>> OpenReduce(const Connection& connection, const ReduceSpec& spec,
                                                         const CallOptions& call) {
  return OpenStream<ValueStream>(connection, spec, call);
}

absl::StatusOr<Timing> RunChunks(const Connection& connection, const ReduceSpec& spec, ChunkSource& source, ResultSink,
                                 const CallOptions& call) {
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, ReduceChunks(connection, spec, source, call));
  return std::move(reply.timing);
}

absl::StatusOr<ResidentReply> RunOnArrays(const ReduceSpec& spec, const ArrayPlaces& places, ResultSink /*sink*/,
                                          const CallOptions& call) {
  v1::ReduceResponse last;
  PREFIXD_RETURN_IF_ERROR(CallResident(spec, places, call, [&](ArrayReply<v1::ReduceResponse>& reply) {
    last = std::move(reply.message);
    return absl::OkStatus();
  }));
  // First: what was made has an owner then, whatever else the reply is.
  PREFIXD_ASSIGN_OR_RETURN(Placed placed, PlacedOf(places.values.connection(), places.values_to, last.values()));
  PREFIXD_ASSIGN_OR_RETURN(ReduceReply reply, ReplyOf(last, spec.output()));
  const size_t value_bytes = SizeOf(spec.output());
  PREFIXD_RETURN_IF_ERROR(CheckLength("values", placed.num_items.value_or(1) * value_bytes, value_bytes));
  ResidentReply result;
  result.values = std::move(placed.made);
  result.count = reply.count;
  result.value = reply.value;
  result.index = reply.index;
  result.timing = std::move(reply.timing);
  return result;
}

}  // namespace internal
}  // namespace prefixd::client
