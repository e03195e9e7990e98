// Between the wire and the server's own words (request.h): a request's message to a Message, a Reply and a Result to a
// response's bytes. What the messages of the contract have in common has one name in all of them, and is treated here
// once; what a spec says is in proto/wire_scan.h and its like. A new primitive changes nothing here.
//
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_RPC_CODEC_H_
#define PREFIXD_SERVER_RPC_CODEC_H_

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "kernels/device.h"
#include "prefixd/v1/admin.pb.h"
#include "prefixd/v1/arrays.pb.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/array_message.h"
#include "proto/wire_array.h"
#include "proto/wire_spec.h"
#include "proto/wire_timing.h"
#include "proto/wire_values.h"
#include "server/request.h"

namespace prefixd {

// Takes an operand that stands beside the values, an element for each: where it is resident as a place, else out of the
// message into the chunk, whose first_item is that of the operand if the values have none. name: the operand's field.
// Errors: those of FromWire; INVALID_ARGUMENT (CHUNK_OUT_OF_ORDER) if it says that it is other values'.
absl::Status TakeBeside(const v1::Operand& operand, std::string_view name, Payload payload,
                        std::optional<ArraySlice>* place, Chunk* chunk, std::optional<Payload>* to);

// The message in domain types, without its spec: who calls this decodes that, if there is one, by its FromWire. The
// chunk comes from `payloads`, which ParseArrayMessage took out of the request.
// Errors: INVALID_ARGUMENT (CHUNK_OUT_OF_ORDER);
//         UNIMPLEMENTED (NOT_IMPLEMENTED) for what is in the contract and not in this server.
template <class Request>
absl::StatusOr<Message> Decode(const Request& request, ArrayPayloads payloads) {
  Message message;
  PREFIXD_ASSIGN_OR_RETURN(message.places.values, FromWire(request.values(), "values"));
  if constexpr (requires { request.sink(); }) {
    PREFIXD_ASSIGN_OR_RETURN(message.places.values_sink, FromWire(request.sink(), "sink"));
  }
  if constexpr (requires { request.values_sink(); }) {
    PREFIXD_ASSIGN_OR_RETURN(message.places.values_sink, FromWire(request.values_sink(), "values_sink"));
    PREFIXD_ASSIGN_OR_RETURN(message.places.counts_sink, FromWire(request.counts_sink(), "counts_sink"));
  }
  if constexpr (requires { request.indices_sink(); }) {
    PREFIXD_ASSIGN_OR_RETURN(message.places.indices_sink, FromWire(request.indices_sink(), "indices_sink"));
  }
  if constexpr (requires { request.keys_sink(); }) {
    PREFIXD_ASSIGN_OR_RETURN(message.places.indices_sink, FromWire(request.keys_sink(), "keys_sink"));
  }
  if constexpr (requires { request.carry_in(); }) {
    if (request.has_carry_in()) message.carry_in = std::move(payloads[Request::kCarryInFieldNumber]);
    message.return_carry = request.return_carry();
  }
  message.request_id = request.request_id();
  message.announces_end = request.announces_end();
  message.ends = request.end();
  const v1::InlineChunk& values = request.values().inline_();
  message.chunk.values = std::move(payloads[Request::kValuesFieldNumber]);
  if (values.has_first_item()) message.chunk.first_item = values.first_item();
  if constexpr (requires { request.segment_offsets(); }) {
    PREFIXD_ASSIGN_OR_RETURN(message.places.segment_offsets, FromWire(request.segment_offsets(), "segment_offsets"));
    if (request.has_segment_offsets() && !message.places.segment_offsets) {
      if (request.segment_offsets().inline_().first_item() != 0) {
        return Error(absl::StatusCode::kInvalidArgument, "CHUNK_OUT_OF_ORDER", "segment_offsets.inline.first_item",
                     "offsets of segments come at once, from the first on: leave it out");
      }
      message.chunk.offsets = std::move(payloads[Request::kSegmentOffsetsFieldNumber]);
    }
    if (request.has_keys()) {
      PREFIXD_RETURN_IF_ERROR(TakeBeside(request.keys(), "keys", std::move(payloads[Request::kKeysFieldNumber]),
                                         &message.places.keys, &message.chunk, &message.chunk.keys));
    }
  }
  if constexpr (requires { request.coefficients(); }) {
    if (request.has_coefficients()) {
      PREFIXD_RETURN_IF_ERROR(TakeBeside(request.coefficients(), "coefficients",
                                         std::move(payloads[Request::kCoefficientsFieldNumber]),
                                         &message.places.coefficients, &message.chunk, &message.chunk.coefficients));
    }
  }
  if constexpr (requires { request.mask(); }) {
    if (request.has_mask()) {
      PREFIXD_RETURN_IF_ERROR(TakeBeside(request.mask(), "mask", std::move(payloads[Request::kMaskFieldNumber]),
                                         &message.places.mask, &message.chunk, &message.chunk.mask));
    }
  }
  return message;
}

// What a result is in that did not go inline.
v1::ResultArray PlaceOf(const std::optional<ArrayInfo>& made, const std::optional<ArraySlice>& written);

// Puts what is known at the end into the message: timing, count, value. Needs: result.status is OK.
template <class Response>
void Encode(const Result& result, Response* response) {
  if constexpr (requires { response->mutable_timing(); }) *response->mutable_timing() = ToWire(result.timing);
  if constexpr (requires { response->mutable_array(); }) *response->mutable_array() = ToWire(*result.new_values);
  if constexpr (requires { response->mutable_values(); }) {
    if (result.new_values || result.values) *response->mutable_values() = PlaceOf(result.new_values, result.values);
  }
  if constexpr (requires { response->mutable_value(); }) {
    if (result.value) EncodeScalar(*result.value, result.dtype, response->mutable_value());
    response->set_count(result.timing.num_items);
    if (result.index) response->set_index(*result.index);
    if (result.new_indices || result.indices) *response->mutable_keys() = PlaceOf(result.new_indices, result.indices);
  } else if constexpr (requires { response->set_count(0); }) {
    response->set_count(result.num_kept);
    if (result.new_counts || result.counts) {
      *response->mutable_segment_counts() = PlaceOf(result.new_counts, result.counts);
    }
  }
  if constexpr (requires { response->mutable_indices(); }) {
    if (result.new_indices || result.indices) {
      *response->mutable_indices() = PlaceOf(result.new_indices, result.indices);
    }
  }
}

// The bytes of a response with that in it; null: without it. No payload is copied.
template <class Response>
grpc::ByteBuffer Pack(const Reply* reply, const Result* result) {
  Response response;
  if (result != nullptr) Encode(*result, &response);
  std::vector<OutgoingArray> arrays;
  if constexpr (requires { response.mutable_carry_out(); }) {
    if (result != nullptr && result->carry_out)
      arrays.push_back({Response::kCarryOutFieldNumber, {}, *result->carry_out});
  }
  if (reply != nullptr) {
    if constexpr (requires { response.mutable_segment_counts(); }) {
      response.set_count(reply->num_kept);
      if (!reply->counts.empty()) arrays.push_back({Response::kSegmentCountsFieldNumber, {}, reply->counts});
    }
    if constexpr (requires { response.mutable_indices(); }) {
      if (!reply->indices.empty()) arrays.push_back({Response::kIndicesFieldNumber, {}, reply->indices});
    }
    if constexpr (requires { response.mutable_keys(); }) {
      if (!reply->indices.empty()) arrays.push_back({Response::kKeysFieldNumber, {}, reply->indices});
    }
    if constexpr (requires { response.mutable_values(); }) {
      if (!reply->values.empty()) arrays.push_back({Response::kValuesFieldNumber, {}, reply->values});
    }
  }
  if constexpr (requires { response.mutable_value(); }) {
    if (result != nullptr && !result->row_values.empty()) {
      arrays.push_back({Response::kValuesFieldNumber, {}, result->row_values});
    }
  }
  return SerializeArrayMessage(response, arrays);
}

// The lists for GetServerInfo: what `device` serves, from its rows and kernels/types.h.
void EncodeAlgorithms(const Device& device, v1::GetServerInfoResponse* response);
void EncodeCapabilities(const Device& device, v1::GetServerInfoResponse* response);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_CODEC_H_
