// A call that moves elements, for a Session: the primitives' and those of resident arrays.
//
// Threads: as Reactor and Transport say.
#ifndef PREFIXD_SERVER_RPC_ARRAY_REACTOR_H_
#define PREFIXD_SERVER_RPC_ARRAY_REACTOR_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/array_message.h"
#include "server/call/session.h"
#include "server/rpc/call_info.h"
#include "server/rpc/codec.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/reactor.h"

namespace prefixd {

// One call. A Decoder makes a Message of each request: decoder(request, payloads, call). Its shape says whether replies
// go out as they come, or together with the result; and the session, whether a second message is asked for.
//
// Every message is raw bytes, so that one that does not parse can be told from the end of a stream: gRPC's own parser
// reports both alike.
template <class Request, class Response, class Decoder>
class ArrayReactor final : public Reactor, public Transport {
 public:
  ArrayReactor(ServerContext* context, Rpc* rpc, const char* method, CallShape shape, Decoder decoder = {})
      : ArrayReactor(context, rpc, CallInfoOf(*context, rpc, method, shape), decoder) {}

  void OnStart() override { session_->Start(); }
  void Read() override { StartRead(&request_); }
  void Decode() override { Receive(std::exchange(request_, grpc::ByteBuffer())); }
  void OnReadDone(bool ok) override {
    if (ok) {
      session_->OnArrival(request_.Length());
    } else {
      session_->OnReadEnd();
    }
  }

  void Write(Reply reply) override {
    if (shape_ == CallShape::kStream) {
      response_ = Pack<Response>(&reply, nullptr);
      StartWrite(&response_);
      return;
    }
    // There are several where the result is smaller than the array: indices without values.
    if (!reply_) reply_.emplace();
    reply_->values.Append(reply.values);
    reply_->indices.Append(reply.indices);
    reply_->counts.Append(reply.counts);
    reply_->num_kept = reply.num_kept;
    session_->OnWriteDone(true);
  }
  void OnWriteDone(bool ok) override {
    response_.Clear();  // Or an idle stream would keep the block that its last reply was sent from.
    session_->OnWriteDone(ok);
  }

  void Finish(const Result& result) override {
    if (!result.status.ok()) {
      Reactor::Finish(ToGrpcStatus(result.status, result.request_id));
      return;
    }
    response_ = Pack<Response>(reply_ ? &*reply_ : nullptr, &result);
    StartWriteAndFinish(&response_);
  }
  void OnCancel() override { session_->OnCancel(); }
  void OnDone() override {
    session_->OnDone(!WasCancelled());
    delete this;
  }

 private:
  ArrayReactor(ServerContext* context, Rpc* rpc, CallInfo call, Decoder decoder)
      : Reactor(rpc),
        shape_(call.shape),
        decoder_(std::move(decoder)),
        call_(call),
        session_(Session::Create(context, std::move(call), this)) {}

  void Receive(const grpc::ByteBuffer& bytes) {
    Request request;
    ArrayPayloads payloads;
    if (absl::Status status = ParseArrayMessage(bytes, &request, &payloads); !status.ok()) {
      session_->OnInvalidMessage(std::move(status), "");
      return;
    }
    const uint64_t held_bytes = bytes.Length() + payloads.num_copied_bytes;
    absl::StatusOr<Message> message = decoder_(request, std::move(payloads), call_);
    if (message.ok()) {
      message->held_bytes = held_bytes;
      session_->OnMessage(*std::move(message));
    } else {
      session_->OnInvalidMessage(message.status(), request.request_id());
    }
  }

  const CallShape shape_;
  const Decoder decoder_;
  const CallInfo call_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  std::optional<Reply> reply_;  // A unary call's.
  const std::shared_ptr<Session> session_;
};

}  // namespace prefixd

#endif  // PREFIXD_SERVER_RPC_ARRAY_REACTOR_H_
