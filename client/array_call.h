// Calls whose messages carry arrays: unary ones, and streams. Private to the library.
//
// gRPC carries these messages as bytes, so that their arrays are not copied into protobuf's messages. gRPC offers that
// only with its asynchronous API; the synchronous calls here use the same inner classes as its generated stubs.
#ifndef PREFIXD_CLIENT_ARRAY_CALL_H_
#define PREFIXD_CLIENT_ARRAY_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "base/status.h"
#include "client/carry.h"
#include "client/chunk.h"
#include "client/connection.h"
#include "client/grpc_status.h"
#include "client/options.h"
#include "client/rpc.h"
#include "client/segments.h"
#include "kernels/types.h"
#include "proto/array_message.h"
#include "proto/payload.h"

namespace prefixd::client {

// The methods of a primitive, and their messages. Each primitive has its own, in its own file:
//
//   template <>
//   struct Contract<ScanSpec> {
//     using Request = v1::ScanRequest;
//     using Response = v1::ScanResponse;
//     static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Scan";
//     static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamScan";
//   };
//
// A primitive whose chunks have more than values also has a static absl::Status CheckBeside(chunk, spec) there, which
// CheckChunk calls. One whose first message says more than its spec has a static void Complete(spec, request).
template <class Spec>
struct Contract;

// Puts the elements of a call into its messages: as copies, or lent, from the caller's own memory. A chunk that has an
// owner is lent always: gRPC keeps that owner as long as it needs the bytes, and nobody waits.
//
// gRPC may keep a message beyond the end of its call: one that was cancelled, refused or too late can leave bytes that
// the connection has not taken yet. gRPC lets go of them when the connection takes them or is given up, and a Write
// that is under way waits for the same. Where the server's host has stopped, that is after ten seconds (Client's
// keep-alive; options.h says what unix sockets lack).
class Lender {
 public:
  // Copies.
  Lender() = default;
  // Lends. Needs: what is lent stays as it is, and the connection there, until the destructor has returned.
  explicit Lender(const Connection& connection);
  // Waits until gRPC holds none of what was lent.
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  Payload Lend(Bytes bytes, const Payload::Owner& owner = nullptr) const;

 private:
  const Connection* connection_ = nullptr;
  absl::Notification given_back_;
  Payload::Owner loan_;  // Each slice that was lent shares it. Null: this one copies.
};

// INVALID_ARGUMENT (LENGTH_NOT_MULTIPLE) unless the bytes are whole elements.
absl::Status CheckWhole(Bytes values, DType dtype);

// Finds what is wrong with a chunk before it is sent.
template <class Spec>
absl::Status CheckChunk(const Chunk& chunk, const Spec& spec) {
  PREFIXD_RETURN_IF_ERROR(CheckWhole(chunk.values, spec.dtype));
  if constexpr (requires { Contract<Spec>::CheckBeside(chunk, spec); }) {
    PREFIXD_RETURN_IF_ERROR(Contract<Spec>::CheckBeside(chunk, spec));
  }
  return absl::OkStatus();
}

// One message with the elements of `chunk`, and with its mask where no predicate selects, or with its coefficients.
template <class Request, class Spec>
grpc::ByteBuffer MakeRequest(const Request& request, const Spec& spec, const Chunk& chunk,
                             std::optional<uint64_t> first_item, const Lender& lender) {
  std::vector<OutgoingArray> arrays;
  if constexpr (requires { spec.mask_kind; }) {
    if (!spec.predicate)
      arrays.push_back({Request::kMaskFieldNumber, first_item, lender.Lend(chunk.mask, chunk.owner)});
  }
  if constexpr (requires { spec.coefficients; }) {
    if (spec.has_coefficients && !spec.coefficients.array) {
      arrays.push_back({Request::kCoefficientsFieldNumber, {}, lender.Lend(chunk.coefficients, chunk.owner)});
    }
  }
  arrays.push_back({Request::kValuesFieldNumber, first_item, lender.Lend(chunk.values, chunk.owner)});
  return SerializeArrayMessage(request, arrays);
}

// Elements of the result of so many.
template <class Spec>
uint64_t NumResults(const Spec& spec, uint64_t num_items) {
  if constexpr (requires { spec.include_initial; }) return num_items + (spec.include_initial ? 1 : 0);
  return num_items;
}

// Bytes of the index beside each result; 0: there is none.
template <class Spec>
uint64_t IndexBytes(const Spec& spec) {
  if constexpr (requires { spec.return_indices; }) return spec.return_indices ? SizeOf(spec.index_dtype) : 0;
  return 0;
}

// A reply, with its arrays where gRPC has them.
template <class Response>
struct ArrayReply {
  Response message;
  Payload values;
  Payload indices;             // Where the message has that field; of a reduce: keys.
  Payload counts;              // Likewise: of segments.
  std::optional<Carry> carry;  // Likewise: in the last reply, if it was asked for.
};

// Errors: INTERNAL if the bytes are no such message.
template <class Response>
absl::Status ParseReply(const grpc::ByteBuffer& bytes, ArrayReply<Response>* reply) {
  Response& message = reply->message;
  ArrayPayloads payloads;
  if (const absl::Status status = ParseArrayMessage(bytes, &message, &payloads); !status.ok()) {
    return absl::InternalError(StrCat("the server's reply: ", status.message()));
  }
  reply->values = std::move(payloads[Response::kValuesFieldNumber]);
  if constexpr (requires { Response::kIndicesFieldNumber; }) {
    reply->indices = std::move(payloads[Response::kIndicesFieldNumber]);
  } else if constexpr (requires { Response::kKeysFieldNumber; }) {
    reply->indices = std::move(payloads[Response::kKeysFieldNumber]);
  }
  if constexpr (requires { Response::kSegmentCountsFieldNumber; }) {
    reply->counts = std::move(payloads[Response::kSegmentCountsFieldNumber]);
  }
  reply->carry.reset();
  if constexpr (requires { Response::kCarryOutFieldNumber; }) {
    if (message.has_carry_out()) {
      reply->carry = Carry::FromBytes(payloads[Response::kCarryOutFieldNumber].ToString());
    }
  }
  return absl::OkStatus();
}

// The message that begins a call.
template <class Spec>
absl::StatusOr<typename Contract<Spec>::Request> FirstRequest(const Spec& spec, const CallOptions& call) {
  typename Contract<Spec>::Request request;
  if constexpr (requires { spec.segmented; }) {
    PREFIXD_RETURN_IF_ERROR(internal::CheckSegments(spec.segmented, spec.segments, spec.keys));
  }
  PREFIXD_ASSIGN_OR_RETURN(*request.mutable_spec(), ToWire(spec));
  request.set_request_id(call.request_id);
  if constexpr (requires { spec.carry_in; }) {
    if (spec.carry_in) request.mutable_carry_in()->mutable_inline_()->set_data(spec.carry_in->ToBytes());
    request.set_return_carry(spec.return_carry);
  }
  if constexpr (requires { Contract<Spec>::Complete(spec, &request); }) Contract<Spec>::Complete(spec, &request);
  return request;
}

// A unary call of any method, with bytes for its messages.
grpc::Status CallMethod(grpc::Channel& channel, const char* method, grpc::ClientContext* context,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

// One attempt of a unary call with the whole array in `chunk`.
template <class Spec>
absl::Status CallUnary(const Server& server, const Spec& spec, const Chunk& chunk, const Lender& lender,
                       const CallOptions& call, absl::Time deadline,
                       ArrayReply<typename Contract<Spec>::Response>* reply) {
  PREFIXD_ASSIGN_OR_RETURN(const auto request, FirstRequest(spec, call));
  AttemptContext context(server, call, deadline);
  grpc::ByteBuffer response;
  PREFIXD_RETURN_IF_ERROR(FromGrpc(CallMethod(*server.channel(), Contract<Spec>::kUnary, context.get(),
                                              MakeRequest(request, spec, chunk, std::nullopt, lender), &response)));
  return ParseReply(response, reply);
}

// A stream of messages as bytes. It also serves methods that reply once, at the end: on the wire they are the same.
// Threads and Ends: as in stream.h, whose streams are made of this.
class ByteStream {
 public:
  ByteStream(const Server& server, const char* method, const CallOptions& call, absl::Time deadline);
  ~ByteStream();

  // False: the call has ended.
  bool Write(const grpc::ByteBuffer& message) { return rpc_->Write(message); }
  void WritesDone() { rpc_->WritesDone(); }
  bool Read(grpc::ByteBuffer* message) { return !status_ && rpc_->Read(message); }
  // Drops the replies that were not read.
  absl::Status Finish();
  void Cancel() { context_.get()->TryCancel(); }
  // Ends the call. Finish then returns this status.
  void Fail(absl::Status status);

 private:
  AttemptContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> rpc_;
  std::optional<absl::Status> status_;  // Once the call has ended.
};

// A stream of chunks and replies: the first message has the spec and the id, each has its position.
template <class Spec>
class ArrayStream {
 public:
  using Request = typename Contract<Spec>::Request;
  using Response = typename Contract<Spec>::Response;

  // That there is no server shows in the call itself.
  static absl::StatusOr<std::unique_ptr<ArrayStream>> Open(const Server& server, const Spec& spec,
                                                           const CallOptions& call, absl::Time deadline) {
    PREFIXD_ASSIGN_OR_RETURN(Request first, FirstRequest(spec, call));
    first.set_announces_end(true);
    return std::unique_ptr<ArrayStream>(new ArrayStream(server, spec, std::move(first), call, deadline));
  }

  absl::Status Write(const Chunk& chunk, const Lender& lender) {
    PREFIXD_RETURN_IF_ERROR(CheckChunk(chunk, spec_));
    next_.set_end(chunk.last);
    has_end_ = chunk.last;
    const bool written = bytes_.Write(MakeRequest(next_, spec_, chunk, next_item_, lender));
    next_.Clear();
    next_item_ += chunk.values.size() / SizeOf(spec_.dtype);
    return written ? absl::OkStatus() : absl::AbortedError("the call has ended; Finish says why");
  }
  void WritesDone() {
    // A call that breaks off lacks this message. It is an empty array's first, too, with the spec. Where this fails the
    // call has ended, and Finish says why.
    if (!has_end_) {
      next_.set_end(true);
      bytes_.Write(MakeRequest(next_, spec_, Chunk(), next_item_, Lender()));
    }
    bytes_.WritesDone();
  }
  bool Read(ArrayReply<Response>* reply) {
    grpc::ByteBuffer bytes;
    if (!bytes_.Read(&bytes)) return false;
    absl::Status status = ParseReply(bytes, reply);
    if (status.ok()) return true;
    bytes_.Fail(std::move(status));
    return false;
  }
  absl::Status Finish() { return bytes_.Finish(); }
  void Cancel() { bytes_.Cancel(); }
  void Fail(absl::Status status) { bytes_.Fail(std::move(status)); }
  const Spec& spec() const { return spec_; }

 private:
  ArrayStream(const Server& server, const Spec& spec, Request first, const CallOptions& call, absl::Time deadline)
      : spec_(spec), next_(std::move(first)), bytes_(server, Contract<Spec>::kStream, call, deadline) {}

  const Spec spec_;
  Request next_;  // Without its arrays.
  bool has_end_ = false;
  uint64_t next_item_ = 0;
  ByteStream bytes_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ARRAY_CALL_H_
