// Messages of the contract as gRPC carries them, without a copy of their arrays: on the way in the bytes of an array
// stay in the slices in which they came, on the way out they are sent from where they are.
//
// In every message of the contract the fields 96 to 100 are arrays, and in each of them inline.data (100, 100) has
// the bytes. The other fields are small, and protobuf parses and writes them.
// Threads: any; nothing here keeps state.
#ifndef PREFIXD_PROTO_ARRAY_MESSAGE_H_
#define PREFIXD_PROTO_ARRAY_MESSAGE_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/payload.h"

namespace prefixd {

inline constexpr int kFirstArrayField = 96;
inline constexpr int kLastArrayField = 100;

// The payloads of a message, by the number of the field that holds them; empty where there is none.
struct ArrayPayloads {
  Payload& operator[](int field) { return by_field[field - kFirstArrayField]; }

  std::array<Payload, kLastArrayField - kFirstArrayField + 1> by_field;
  uint64_t num_copied_bytes = 0;  // Copies: the rest shares the message's memory.
};

// A message has at most so much beside its arrays, and is read whatever way it is encoded only up to so much in all. A
// field of two bytes costs protobuf 40 ns, and 60 bytes of memory if it is unknown: without a bound a message of 4 MiB
// of them holds a thread for 80 ms.
inline constexpr uint64_t kMaxBytesBesideArrays = uint64_t{16} << 10;

// Parses a message of the contract. The bytes of its arrays end up in *payloads, and not in *message.
// Errors: INVALID_ARGUMENT (MALFORMED) if the bytes are no such message, or are too many beside the arrays.
// Cost:   copies what is no array; the arrays share the memory of `bytes`, but are copied too where the encoding is an
//         unusual one, such as a field that comes twice.
absl::Status ParseArrayMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message* message,
                               ArrayPayloads* payloads);

// The same of a message that has no arrays.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

// The same of one that may have up to max_bytes in all, whatever they are. Cost: copies them.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes, uint64_t max_bytes, google::protobuf::Message* message);

// An array to be sent, in the field of that number.
struct OutgoingArray {
  int field = kLastArrayField;
  std::optional<uint64_t> first_item;
  Payload data;
};

// The bytes that protobuf would make of `message` with those arrays in it.
// Needs:  no array of `arrays` in `message`; their fields ascend.
// Cost:   copies no payload above 16 KiB: gRPC holds its owner until it has sent it.
grpc::ByteBuffer SerializeArrayMessage(const google::protobuf::Message& message,
                                       absl::Span<const OutgoingArray> arrays);

}  // namespace prefixd

#endif  // PREFIXD_PROTO_ARRAY_MESSAGE_H_
