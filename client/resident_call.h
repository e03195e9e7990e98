// Calls of a primitive whose operands are resident arrays. Private to the library.
//
// What has no result on this side, or one that fits a message, is one unary call. A longer result comes as a stream,
// whose only request names the operands.
//
// Needs: a Contract<Spec>.
#ifndef PREFIXD_CLIENT_RESIDENT_CALL_H_
#define PREFIXD_CLIENT_RESIDENT_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/array.h"
#include "client/array_call.h"
#include "client/attempts.h"
#include "client/caller_stream.h"
#include "client/chunk_call.h"
#include "client/polling_call.h"
#include "client/rpc.h"
#include "proto/wire_array.h"

namespace prefixd::client {

v1::Sink ToWire(const Target& target);

// INVALID_ARGUMENT (FIELD_CONFLICT) for a place that this primitive has no use for.
absl::Status UnusedPlace(std::string_view field);

// The bytes of the result that come to this side, at most.
template <class Spec>
uint64_t InlineBytes(const Spec& spec, const ArrayPlaces& places) {
  if constexpr (requires { spec.return_values; }) {
    const uint64_t value_bytes = spec.return_values && !places.values_to ? SizeOf(spec.dtype) : 0;
    const uint64_t index_bytes = spec.return_indices && !places.indices_to ? SizeOf(spec.index_dtype) : 0;
    return places.values.num_items() * (value_bytes + index_bytes);
  } else if constexpr (requires(typename Contract<Spec>::Response response) { response.value(); }) {
    return 0;  // The values of rows and columns come at once too, or not at all.
  } else {
    const uint64_t value_bytes = places.values_to ? 0 : SizeOf(spec.output());
    const uint64_t index_bytes = places.indices_to ? 0 : IndexBytes(spec);
    return NumResults(spec, places.values.num_items()) * (value_bytes + index_bytes);
  }
}

template <class Spec>
absl::StatusOr<typename Contract<Spec>::Request> ResidentRequest(const Spec& spec, const ArrayPlaces& places,
                                                                 const CallOptions& call) {
  using Request = typename Contract<Spec>::Request;
  PREFIXD_ASSIGN_OR_RETURN(Request request, FirstRequest(spec, call));
  *request.mutable_values()->mutable_array() = prefixd::ToWire(places.values.slice());
  if constexpr (requires { request.mutable_mask(); }) {
    if (places.mask) *request.mutable_mask()->mutable_array() = prefixd::ToWire(places.mask->slice());
  } else {
    if (places.mask) return UnusedPlace("mask");
  }
  if constexpr (requires { request.mutable_values_sink(); }) {
    if (places.values_to) *request.mutable_values_sink() = ToWire(*places.values_to);
  } else {
    if (places.values_to) *request.mutable_sink() = ToWire(*places.values_to);
  }
  if constexpr (requires { request.mutable_counts_sink(); }) {
    if (places.counts_to) *request.mutable_counts_sink() = ToWire(*places.counts_to);
  } else {
    if (places.counts_to) return UnusedPlace("counts_sink");
  }
  if constexpr (requires { request.mutable_indices_sink(); }) {
    if (places.indices_to) *request.mutable_indices_sink() = ToWire(*places.indices_to);
  } else if constexpr (requires { request.mutable_keys_sink(); }) {
    if (places.indices_to) *request.mutable_keys_sink() = ToWire(*places.indices_to);
  } else {
    if (places.indices_to) return UnusedPlace("indices_sink");
  }
  return request;
}

// Where one result is: the handle of an array that was made for it, and how many elements there are on the device.
struct Placed {
  Array made;
  std::optional<uint64_t> num_items;
};
// Errors: INTERNAL where the server did not put the result where it was to go.
absl::StatusOr<Placed> PlacedOf(const std::shared_ptr<const Connection>& connection, const std::optional<Target>& to,
                                const v1::ResultArray& result);

// on_reply gets each response with its arrays, and returns a status; an error ends the call.
template <class Spec, class OnReply>
absl::Status CallResident(const Spec& spec, const ArrayPlaces& places, const CallOptions& call, OnReply on_reply) {
  using Response = typename Contract<Spec>::Response;
  const Connection* const connection = places.values.connection().get();
  if (connection == nullptr) return absl::FailedPreconditionError("the values are of a handle that has no array");
  PREFIXD_RETURN_IF_ERROR(connection->status());
  const absl::Time deadline = Deadline(call);
  PREFIXD_ASSIGN_OR_RETURN(auto request, ResidentRequest(spec, places, call));
  // What leaves something behind must not run twice: in place it would take its own result for its values.
  const auto run = [&](auto attempt) -> absl::Status {
    if (places.values_to || places.indices_to || places.counts_to) {
      return RunOnce(*connection, call, deadline, [&](const Server& server) { return attempt(server).status; });
    }
    Attempts attempts(*connection, call, deadline);
    return Retry(attempts, attempt);
  };
  if (InlineBytes(spec, places) <= kMaxPayloadBytes) {
    return run([&](const Server& server) -> Outcome {
      AttemptContext context(server, call, deadline);
      grpc::ByteBuffer bytes;
      absl::Status status = UnaryStatus(FromGrpc(CallPolling(server.channel(), Contract<Spec>::kUnary, context.get(),
                                                             SerializeArrayMessage(request, {}), &bytes)));
      if (!status.ok()) return {std::move(status), true};
      ArrayReply<Response> reply;
      status = ParseReply(bytes, &reply);
      return {status.ok() ? on_reply(reply) : std::move(status)};
    });
  }
  if constexpr (requires { spec.reverse; }) {
    if (spec.reverse) {
      return Error(
          absl::StatusCode::kFailedPrecondition, "REVERSE_ON_STREAM", "spec.reverse",
          "a reverse result above 1 MiB can't come back as it is made: let it go into an array, and read that");
    }
  }
  if constexpr (requires { spec.axis; }) {
    if (spec.axis && spec.axis->along == Axis::Along::kColumn) {
      return Error(absl::StatusCode::kFailedPrecondition, "AXIS_ON_STREAM", "spec.axis",
                   "a result of columns above 1 MiB can't come back as it is made: let it go into an array, and read "
                   "that");
    }
  }
  if constexpr (requires { spec.segmented; }) {
    if (spec.segmented) {
      return Error(absl::StatusCode::kFailedPrecondition, "SEGMENTS_ON_STREAM", "segment_offsets",
                   "a result of segments above 1 MiB can't come back as it is made: let it go into an array, and read "
                   "that");
    }
  }
  request.set_announces_end(true);
  request.set_end(true);
  return run([&](const Server& server) -> Outcome {
    ByteStream stream(server, Contract<Spec>::kStream, call, deadline);
    stream.Write(SerializeArrayMessage(request, {}));  // Where it fails, Finish says why.
    stream.WritesDone();
    bool replied = false;
    for (grpc::ByteBuffer bytes; stream.Read(&bytes); replied = true) {
      ArrayReply<Response> reply;
      absl::Status status = ParseReply(bytes, &reply);
      if (status.ok()) status = on_reply(reply);
      if (!status.ok()) {
        stream.Fail(status);
        return {std::move(status)};
      }
    }
    return {ExplainDeadline(stream.Finish(), "the timeout passed before the whole result was there"), !replied};
  });
}

// A call whose result has as many elements as its values.
template <class Spec>
absl::StatusOr<ResidentReply> RunResidentForValues(const Spec& spec, const ArrayPlaces& places, ResultSink sink,
                                                   const CallOptions& call) {
  using Response = typename Contract<Spec>::Response;
  const size_t item_bytes = SizeOf(spec.output());
  ResidentReply result;
  Response last;
  uint64_t got_bytes = 0, got_index_bytes = 0;
  const auto take = [&](auto& reply) -> absl::Status {
    got_bytes += reply.values.size();
    PREFIXD_RETURN_IF_ERROR(CheckWholeItems("values", reply.values, item_bytes));
    got_index_bytes += reply.indices.size();
    last = std::move(reply.message);
    result.carry = std::move(reply.carry);
    if (reply.values.empty() && reply.indices.empty()) return absl::OkStatus();
    return sink(reply.values.parts(), reply.indices.parts());
  };
  PREFIXD_RETURN_IF_ERROR(CallResident(spec, places, call, take));
  PREFIXD_ASSIGN_OR_RETURN(Placed placed, PlacedOf(places.values.connection(), places.values_to, last.values()));
  result.count = placed.num_items.value_or(got_bytes / item_bytes);
  const uint64_t num_results = NumResults(spec, places.values.num_items());
  if (result.count != num_results) return CheckLength("values", result.count * item_bytes, num_results * item_bytes);
  result.values = std::move(placed.made);
  if constexpr (requires { last.indices(); }) {
    PREFIXD_ASSIGN_OR_RETURN(Placed indices, PlacedOf(places.values.connection(), places.indices_to, last.indices()));
    const uint64_t index_bytes = places.indices_to ? 0 : IndexBytes(spec);
    PREFIXD_RETURN_IF_ERROR(CheckLength("indices", got_index_bytes, num_results * index_bytes));
    result.indices = std::move(indices.made);
  }
  result.timing = TimingOf(last).value_or(Timing());
  return result;
}

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_RESIDENT_CALL_H_
