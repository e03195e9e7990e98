// Between the wire and the server's own words (request.h): protobuf messages to domain types and back. Beside this file
// and wire_values.h only the services see protobuf.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_SERVER_CODEC_H_
#define PREFIXD_SERVER_CODEC_H_

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "prefixd/v1/admin.pb.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/array_message.h"
#include "server/request.h"

namespace prefixd {

// The message in domain types, with its chunk from `payloads`, which ParseArrayMessage took out of the request.
// Errors: INVALID_ARGUMENT (UNKNOWN_ENUM, UNSUPPORTED_COMBINATION, SCALAR_OUT_OF_RANGE, FIELD_CONFLICT);
//         UNIMPLEMENTED (NOT_IMPLEMENTED) for what is in the contract and not in this server.
absl::StatusOr<Message> Decode(const v1::ScanRequest& request, ArrayPayloads payloads);
absl::StatusOr<Message> Decode(const v1::ReduceRequest& request, ArrayPayloads payloads);
absl::StatusOr<Message> Decode(const v1::CompactRequest& request, ArrayPayloads payloads);

// Puts what is known at the end into the message: timing, count, value. Needs: result.status is OK.
void Encode(const Result& result, v1::ScanResponse* response);
void Encode(const Result& result, v1::ReduceResponse* response);
void Encode(const Result& result, v1::CompactResponse* response);

// The bytes of a response with that in it; null: without it. No payload is copied.
template <class Response>
grpc::ByteBuffer Pack(const Reply* reply, const Result* result);
extern template grpc::ByteBuffer Pack<v1::ScanResponse>(const Reply* reply, const Result* result);
extern template grpc::ByteBuffer Pack<v1::ReduceResponse>(const Reply* reply, const Result* result);
extern template grpc::ByteBuffer Pack<v1::CompactResponse>(const Reply* reply, const Result* result);

// The lists for GetServerInfo: what `device` serves, from its rows and kernels/types.h.
void EncodeAlgorithms(const Device& device, v1::GetServerInfoResponse* response);
void EncodeCapabilities(const Device& device, v1::GetServerInfoResponse* response);

}  // namespace prefixd

#endif  // PREFIXD_SERVER_CODEC_H_
