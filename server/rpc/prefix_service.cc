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
  if (!ParseArrayMessage(bytes, &request, &payloads)) {
    session->OnInvalidMessage(Error(absl::StatusCode::kInvalidArgument, "MALFORMED", "",
                                    StrCat("the message is no ", Request::descriptor()->full_name(),
                                           ": check that it was made from the same contract")),
                              "");
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

// One message in, one out.
template <class Request, class Response>
class UnaryReactor final : public grpc::ServerUnaryReactor, public Transport {
 public:
  UnaryReactor(ServerContext* context, grpc::CallbackServerContext* call, const char* method, const ByteBuffer* request,
               ByteBuffer* response)
      : call_(call),
        request_(request),
        response_(response),
        session_(Session::Create(context, CallInfoOf(*context, call, method, CallShape::kUnary), this)) {
    session_->Start();
  }

  void Read() override { session_->OnArrival(request_->Length()); }
  void Decode() override { Receive<Request>(*request_, session_.get()); }
  void Write(Reply reply) override {
    // There are several where the result is smaller than the array: indices without values.
    if (!reply_) reply_.emplace();
    reply_->values.Append(reply.values);
    reply_->indices.Append(reply.indices);
    reply_->num_kept = reply.num_kept;
    session_->OnWriteDone(true);
  }
  void Finish(const Result& result) override {
    if (result.status.ok()) *response_ = Pack<Response>(reply_ ? &*reply_ : nullptr, &result);
    grpc::ServerUnaryReactor::Finish(ToGrpcStatus(result.status, result.request_id));
  }

  void OnCancel() override { session_->OnCancel(); }
  void OnDone() override {
    session_->OnDone(!call_->IsCancelled());
    delete this;
  }

 private:
  grpc::CallbackServerContext* const call_;
  const ByteBuffer* const request_;
  ByteBuffer* const response_;
  std::optional<Reply> reply_;
  const std::shared_ptr<Session> session_;
};

// Messages in; subclasses say how replies go out. Base is the gRPC reactor.
template <class Base, class Request>
class ReadingReactor : public Base, public Transport {
 public:
  ReadingReactor(ServerContext* context, grpc::CallbackServerContext* call, const char* method)
      : session_(Session::Create(context, CallInfoOf(*context, call, method, CallShape::kStream), this)), call_(call) {}

  void Read() final { this->StartRead(&request_); }
  void Decode() final { Receive<Request>(std::exchange(request_, ByteBuffer()), session_.get()); }
  void OnReadDone(bool ok) final {
    if (ok) {
      session_->OnArrival(request_.Length());
    } else {
      session_->OnReadEnd();
    }
  }
  void OnCancel() final { session_->OnCancel(); }
  void OnDone() final {
    session_->OnDone(!call_->IsCancelled());
    delete this;
  }

 protected:
  const std::shared_ptr<Session> session_;

 private:
  grpc::CallbackServerContext* const call_;
  ByteBuffer request_;
};

template <class Request, class Response>
class BidiReactor final : public ReadingReactor<grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>, Request> {
  using Base = ReadingReactor<grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>, Request>;

 public:
  BidiReactor(ServerContext* context, grpc::CallbackServerContext* call, const char* method)
      : Base(context, call, method) {
    this->session_->Start();
  }

  void Write(Reply reply) override {
    response_ = Pack<Response>(&reply, nullptr);
    this->StartWrite(&response_);
  }
  void Finish(const Result& result) override {
    if (!result.status.ok()) {
      grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>::Finish(ToGrpcStatus(result.status, result.request_id));
      return;
    }
    response_ = Pack<Response>(nullptr, &result);
    this->StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnWriteDone(bool ok) override {
    response_.Clear();  // Or an idle stream would keep the block that its last reply was sent from.
    this->session_->OnWriteDone(ok);
  }

 private:
  ByteBuffer response_;
};

// Many messages in, one out.
template <class Request, class Response>
class ReadReactor final : public ReadingReactor<grpc::ServerReadReactor<ByteBuffer>, Request> {
  using Base = ReadingReactor<grpc::ServerReadReactor<ByteBuffer>, Request>;

 public:
  ReadReactor(ServerContext* context, grpc::CallbackServerContext* call, const char* method, ByteBuffer* response)
      : Base(context, call, method), response_(response) {
    this->session_->Start();
  }

  void Write(Reply /*reply*/) override { this->session_->OnWriteDone(true); }  // There is none with items.
  void Finish(const Result& result) override {
    if (result.status.ok()) *response_ = Pack<Response>(nullptr, &result);
    grpc::ServerReadReactor<ByteBuffer>::Finish(ToGrpcStatus(result.status, result.request_id));
  }

 private:
  ByteBuffer* const response_;
};

// Every method takes and gives raw bytes, so that a message that does not parse can be told from the end of a stream:
// gRPC's own parser reports both alike.
using RawPrefixService = v1::PrefixService::WithRawCallbackMethod_Scan<
    v1::PrefixService::WithRawCallbackMethod_Reduce<v1::PrefixService::WithRawCallbackMethod_Compact<
        v1::PrefixService::WithRawCallbackMethod_StreamScan<v1::PrefixService::WithRawCallbackMethod_StreamReduce<
            v1::PrefixService::WithRawCallbackMethod_StreamCompact<v1::PrefixService::WithRawCallbackMethod_Difference<
                v1::PrefixService::WithRawCallbackMethod_StreamDifference<v1::PrefixService::Service>>>>>>>>;

class PrefixService final : public RawPrefixService {
 public:
  explicit PrefixService(ServerContext* context) : context_(context) {}

  grpc::ServerUnaryReactor* Scan(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return Unary<v1::ScanRequest, v1::ScanResponse>(call, "Scan", request, response);
  }
  grpc::ServerUnaryReactor* Reduce(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                   ByteBuffer* response) override {
    return Unary<v1::ReduceRequest, v1::ReduceResponse>(call, "Reduce", request, response);
  }
  grpc::ServerUnaryReactor* Compact(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                    ByteBuffer* response) override {
    return Unary<v1::CompactRequest, v1::CompactResponse>(call, "Compact", request, response);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* StreamScan(grpc::CallbackServerContext* call) override {
    return new BidiReactor<v1::ScanRequest, v1::ScanResponse>(context_, call, "StreamScan");
  }
  grpc::ServerReadReactor<ByteBuffer>* StreamReduce(grpc::CallbackServerContext* call, ByteBuffer* response) override {
    return new ReadReactor<v1::ReduceRequest, v1::ReduceResponse>(context_, call, "StreamReduce", response);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* StreamCompact(grpc::CallbackServerContext* call) override {
    return new BidiReactor<v1::CompactRequest, v1::CompactResponse>(context_, call, "StreamCompact");
  }

  grpc::ServerUnaryReactor* Difference(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                       ByteBuffer* response) override {
    return Unary<v1::DifferenceRequest, v1::DifferenceResponse>(call, "Difference", request, response);
  }
  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* StreamDifference(grpc::CallbackServerContext* call) override {
    return new BidiReactor<v1::DifferenceRequest, v1::DifferenceResponse>(context_, call, "StreamDifference");
  }

 private:
  template <class Request, class Response>
  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* call, const char* method, const ByteBuffer* request,
                                  ByteBuffer* response) {
    return new UnaryReactor<Request, Response>(context_, call, method, request, response);
  }

  ServerContext* const context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePrefixService(ServerContext* context) {
  return std::make_unique<PrefixService>(context);
}

}  // namespace prefixd
