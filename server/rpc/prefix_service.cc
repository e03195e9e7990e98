#include "server/rpc/prefix_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "prefixd/v1/primitives.grpc.pb.h"
#include "proto/array_message.h"
#include "proto/wire_compact.h"
#include "proto/wire_difference.h"
#include "proto/wire_reduce.h"
#include "proto/wire_scan.h"
#include "server/call/session.h"
#include "server/rpc/call_info.h"
#include "server/rpc/codec.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/methods.h"
#include "server/rpc/reactor.h"

namespace prefixd {
namespace {

using grpc::ByteBuffer;

template <class Request>
absl::StatusOr<Message> DecodeAll(const Request& request, ArrayPayloads payloads) {
  PREFIXD_ASSIGN_OR_RETURN(Message message, Decode(request, std::move(payloads)));
  if (request.has_spec()) {
    PREFIXD_ASSIGN_OR_RETURN(message.spec, FromWire(request.spec()));
  }
  return message;
}

// Hands the session what came.
template <class Request>
void Receive(const ByteBuffer& bytes, Session* session) {
  Request request;
  ArrayPayloads payloads;
  if (absl::Status status = ParseArrayMessage(bytes, &request, &payloads); !status.ok()) {
    session->OnInvalidMessage(std::move(status), "");
    return;
  }
  const uint64_t held_bytes = bytes.Length() + payloads.num_copied_bytes;
  absl::StatusOr<Message> message = DecodeAll(request, std::move(payloads));
  if (message.ok()) {
    message->held_bytes = held_bytes;
    session->OnMessage(*std::move(message));
  } else {
    session->OnInvalidMessage(message.status(), request.request_id());
  }
}

// One call. Its shape says whether replies go out as they come, or together with the result; and the session, whether a
// second message is asked for.
//
// Every message is raw bytes, so that one that does not parse can be told from the end of a stream: gRPC's own parser
// reports both alike.
template <class Request, class Response>
class ArrayReactor final : public Reactor, public Transport {
 public:
  ArrayReactor(ServerContext* context, Rpc* rpc, const char* method, CallShape shape)
      : Reactor(rpc),
        shape_(shape),
        session_(Session::Create(context, CallInfoOf(*context, rpc, method, shape), this)) {}

  void OnStart() override { session_->Start(); }
  void Read() override { StartRead(&request_); }
  void Decode() override { Receive<Request>(std::exchange(request_, ByteBuffer()), session_.get()); }
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
  const CallShape shape_;
  ByteBuffer request_;
  ByteBuffer response_;
  std::optional<Reply> reply_;  // A unary call's.
  const std::shared_ptr<Session> session_;
};

// A primitive's two methods: "Scan" and "StreamScan".
template <class Request, class Response>
void Add(const char* unary, const char* stream, ServerContext* context, Methods* methods) {
  const auto add = [&](const char* method, CallShape shape) {
    methods->Add(v1::PrefixService::service_full_name(), method,
                 [=](Rpc* rpc) { return new ArrayReactor<Request, Response>(context, rpc, method, shape); });
  };
  add(unary, CallShape::kUnary);
  add(stream, CallShape::kStream);
}

}  // namespace

void AddPrefixMethods(ServerContext* context, Methods* methods) {
  Add<v1::ScanRequest, v1::ScanResponse>("Scan", "StreamScan", context, methods);
  Add<v1::ReduceRequest, v1::ReduceResponse>("Reduce", "StreamReduce", context, methods);
  Add<v1::CompactRequest, v1::CompactResponse>("Compact", "StreamCompact", context, methods);
  Add<v1::DifferenceRequest, v1::DifferenceResponse>("Difference", "StreamDifference", context, methods);
}

}  // namespace prefixd
