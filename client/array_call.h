// Calls whose messages carry arrays: unary ones, and streams. Private to the library.
//
// Messages go through gRPC as bytes, for then their arrays need no copy in one of protobuf's messages. gRPC's public
// way to that is asynchronous; this is the synchronous one, made of what its generated stubs are made of.
#ifndef PREFIXD_CLIENT_ARRAY_CALL_H_
#define PREFIXD_CLIENT_ARRAY_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "client/convert.h"
#include "client/rpc.h"
#include "kernels/status.h"
#include "prefixd/v1/primitives.pb.h"
#include "proto/array_message.h"

namespace prefixd::client {

// A spec's methods, and their messages.
template <class Spec>
struct Contract;
template <>
struct Contract<ScanSpec> {
  using Request = v1::ScanRequest;
  using Response = v1::ScanResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Scan";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamScan";
};
template <>
struct Contract<ReduceSpec> {
  using Request = v1::ReduceRequest;
  using Response = v1::ReduceResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Reduce";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamReduce";
};
template <>
struct Contract<CompactSpec> {
  using Request = v1::CompactRequest;
  using Response = v1::CompactResponse;
  static constexpr char kUnary[] = "/prefixd.v1.PrefixService/Compact";
  static constexpr char kStream[] = "/prefixd.v1.PrefixService/StreamCompact";
};

// What the messages of a call are made of: copies of its elements, or the elements' own memory.
//
// gRPC does not promise to be done with a message when the call has ended: a call that was cancelled, refused or too
// late may leave it with bytes that the connection has not taken yet. It lets go of them when the connection has, or is
// given up, which a Write under way waits for too: where the server's host has stopped, ten seconds (Client's
// keep-alive; options.h says what unix sockets lack).
class Lender {
 public:
  // Copies.
  Lender() = default;
  // Lends. Needs: what is lent stays as it is until the destructor has returned.
  explicit Lender(std::shared_ptr<grpc::Channel> channel);
  // Waits until gRPC holds none of what was lent.
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  Payload Lend(Bytes bytes) const;

 private:
  std::shared_ptr<grpc::Channel> channel_;
  absl::Notification given_back_;
  Payload::Owner loan_;  // Each slice has one; without it there is nothing lent.
};

// One message with the elements of `chunk`.
template <class Spec>
grpc::ByteBuffer MakeRequest(const typename Contract<Spec>::Request& request, const Spec& spec, const Chunk& chunk,
                             std::optional<uint64_t> first_item, const Lender& lender) {
  using Request = typename Contract<Spec>::Request;
  std::vector<OutgoingArray> arrays;
  if constexpr (std::is_same_v<Spec, CompactSpec>) {
    if (!spec.predicate) arrays.push_back({Request::kMaskFieldNumber, first_item, lender.Lend(chunk.mask)});
  }
  arrays.push_back({Request::kValuesFieldNumber, first_item, lender.Lend(chunk.values)});
  return SerializeArrayMessage(request, arrays);
}

// A reply, with its arrays where gRPC has them.
template <class Response>
struct ArrayReply {
  Response message;
  Payload values;
  Payload indices;  // Of a CompactResponse.
};

// Errors: INTERNAL if the bytes are none.
template <class Response>
absl::Status ParseReply(const grpc::ByteBuffer& bytes, ArrayReply<Response>* reply) {
  Response& message = reply->message;
  ArrayPayloads payloads;
  if (!ParseArrayMessage(bytes, &message, &payloads)) {
    return absl::InternalError(StrCat("the server's reply is no ", message.GetTypeName()));
  }
  reply->values = std::move(payloads[Response::kValuesFieldNumber]);
  if constexpr (std::is_same_v<Response, v1::CompactResponse>) {
    reply->indices = std::move(payloads[Response::kIndicesFieldNumber]);
  }
  return absl::OkStatus();
}

// The message that begins a call.
template <class Spec>
absl::StatusOr<typename Contract<Spec>::Request> FirstRequest(const Spec& spec, const CallOptions& call) {
  typename Contract<Spec>::Request request;
  PREFIXD_ASSIGN_OR_RETURN(*request.mutable_spec(), ToWire(spec));
  request.set_request_id(call.request_id);
  return request;
}

grpc::Status CallMethod(grpc::Channel& channel, const char* method, grpc::ClientContext* context,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

// One attempt of a unary call with the whole array in `chunk`.
template <class Spec>
absl::Status CallUnary(grpc::Channel& channel, const Spec& spec, const Chunk& chunk, const Lender& lender,
                       const CallOptions& call, absl::Time deadline,
                       ArrayReply<typename Contract<Spec>::Response>* reply) {
  PREFIXD_ASSIGN_OR_RETURN(const auto request, FirstRequest(spec, call));
  AttemptContext context(call, deadline);
  grpc::ByteBuffer response;
  PREFIXD_RETURN_IF_ERROR(FromWire(CallMethod(channel, Contract<Spec>::kUnary, context.get(),
                                              MakeRequest(request, spec, chunk, std::nullopt, lender), &response)));
  return ParseReply(response, reply);
}

// A stream with replies, or with one reply, which on the wire is the same.
// Threads and Ends: as stream.h says of its streams, which are made of this.
class ByteStream {
 public:
  // Waits for a connection, so that a server that is just starting is found. What is wrong shows in the call itself.
  ByteStream(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options, const char* method,
             const CallOptions& call);
  ~ByteStream();

  // False: the call has ended.
  bool Write(const grpc::ByteBuffer& message) { return rpc_->Write(message); }
  void WritesDone() { rpc_->WritesDone(); }
  bool Read(grpc::ByteBuffer* message) { return !status_ && rpc_->Read(message); }
  // Drops the replies that were not read.
  absl::Status Finish();
  void Cancel() { context_.get()->TryCancel(); }
  // Ends the call. It is this that Finish returns then.
  void Fail(absl::Status status);

 private:
  AttemptContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>> rpc_;
  std::optional<absl::Status> status_;  // Once the call has ended.
};

// The same with chunks and replies: the spec and the id in the first message, the position in each.
template <class Spec>
class ArrayStream {
 public:
  using Request = typename Contract<Spec>::Request;
  using Response = typename Contract<Spec>::Response;

  static absl::StatusOr<std::unique_ptr<ArrayStream>> Open(const std::shared_ptr<grpc::Channel>& channel,
                                                           const ClientOptions& options, const Spec& spec,
                                                           const CallOptions& call) {
    PREFIXD_ASSIGN_OR_RETURN(Request first, FirstRequest(spec, call));
    return std::unique_ptr<ArrayStream>(new ArrayStream(channel, options, spec, std::move(first), call));
  }

  absl::Status Write(const Chunk& chunk, const Lender& lender) {
    PREFIXD_RETURN_IF_ERROR(internal::CheckChunk(chunk, spec_));
    const bool written = bytes_.Write(MakeRequest(next_, spec_, chunk, next_item_, lender));
    next_.Clear();
    next_item_ += chunk.values.size() / SizeOf(spec_.dtype);
    started_ = true;
    return written ? absl::OkStatus() : absl::AbortedError("the call has ended; Finish says why");
  }
  void WritesDone() {
    // The server wants the spec even for an empty array. Where this fails the call has ended, and Finish says why.
    if (!started_) bytes_.Write(SerializeArrayMessage(next_, {}));
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
  ArrayStream(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options, const Spec& spec,
              Request first, const CallOptions& call)
      : spec_(spec), next_(std::move(first)), bytes_(channel, options, Contract<Spec>::kStream, call) {}

  const Spec spec_;
  Request next_;  // Without its arrays.
  bool started_ = false;
  uint64_t next_item_ = 0;
  ByteStream bytes_;
};

}  // namespace prefixd::client

#endif  // PREFIXD_CLIENT_ARRAY_CALL_H_
