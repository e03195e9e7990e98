#include "server/service.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "kernels/status.h"
#include "proto/array_message.h"
#include "server/codec.h"
#include "server/grpc_status.h"
#include "server/version.h"

namespace prefixd {
namespace {

using grpc::ByteBuffer;

constexpr char kTraceParent[] = "traceparent";

// W3C trace context, version 00: 00-{32 hex}-{16 hex}-{2 hex}. Anything else is dropped: gRPC refuses to send back
// some of what it accepts, and ends the process over it.
bool IsTraceParent(std::string_view value) {
  constexpr std::string_view kShape = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
  if (value.size() != kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool hex = (value[i] >= '0' && value[i] <= '9') || (value[i] >= 'a' && value[i] <= 'f');
    if (kShape[i] == 'h' ? !hex : value[i] != kShape[i]) return false;
  }
  return true;
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
  auto message = Decode(request, std::move(payloads));
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
        session_(Session::Create(context, Describe(call, method, CallShape::kUnary), this)) {
    session_->Start();
  }

  void Read() override { Receive<Request>(*request_, session_.get()); }
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
      : session_(Session::Create(context, Describe(call, method, CallShape::kStream), this)), call_(call) {}

  void Read() final { this->StartRead(&request_); }
  void OnReadDone(bool ok) final {
    if (ok) {
      Receive<Request>(std::exchange(request_, ByteBuffer()), session_.get());
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

class ReduceReactor final : public ReadingReactor<grpc::ServerReadReactor<ByteBuffer>, v1::ReduceRequest> {
 public:
  ReduceReactor(ServerContext* context, grpc::CallbackServerContext* call, ByteBuffer* response)
      : ReadingReactor(context, call, "StreamReduce"), response_(response) {
    session_->Start();
  }

  void Write(Reply /*reply*/) override { session_->OnWriteDone(true); }  // A reduce has none.
  void Finish(const Result& result) override {
    if (result.status.ok()) *response_ = Pack<v1::ReduceResponse>(nullptr, &result);
    grpc::ServerReadReactor<ByteBuffer>::Finish(ToGrpcStatus(result.status, result.request_id));
  }

 private:
  ByteBuffer* const response_;
};

void SetBudget(uint64_t limit, uint64_t used, v1::Budget* budget) {
  budget->set_limit(limit);
  budget->set_used(used);
}

}  // namespace

CallInfo Describe(grpc::CallbackServerContext* call, std::string method, CallShape shape) {
  CallInfo info;
  info.method = std::move(method);
  info.caller = call->peer();
  info.shape = shape;
  const std::chrono::system_clock::time_point deadline = call->deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) info.deadline = absl::FromChrono(deadline);
  const auto& metadata = call->client_metadata();
  if (const auto it = metadata.find(kTraceParent); it != metadata.end()) {
    const std::string_view value(it->second.data(), it->second.size());
    if (IsTraceParent(value)) {
      info.trace_parent = value;  // The caller finds its own id in our reply and in our log.
      call->AddInitialMetadata(kTraceParent, info.trace_parent);
    }
  }
  return info;
}

grpc::ServerUnaryReactor* PrefixService::Scan(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                              ByteBuffer* response) {
  return new UnaryReactor<v1::ScanRequest, v1::ScanResponse>(context_, call, "Scan", request, response);
}

grpc::ServerUnaryReactor* PrefixService::Reduce(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                                ByteBuffer* response) {
  return new UnaryReactor<v1::ReduceRequest, v1::ReduceResponse>(context_, call, "Reduce", request, response);
}

grpc::ServerUnaryReactor* PrefixService::Compact(grpc::CallbackServerContext* call, const ByteBuffer* request,
                                                 ByteBuffer* response) {
  return new UnaryReactor<v1::CompactRequest, v1::CompactResponse>(context_, call, "Compact", request, response);
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* PrefixService::StreamScan(grpc::CallbackServerContext* call) {
  return new BidiReactor<v1::ScanRequest, v1::ScanResponse>(context_, call, "StreamScan");
}

grpc::ServerReadReactor<ByteBuffer>* PrefixService::StreamReduce(grpc::CallbackServerContext* call,
                                                                 ByteBuffer* response) {
  return new ReduceReactor(context_, call, response);
}

grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* PrefixService::StreamCompact(grpc::CallbackServerContext* call) {
  return new BidiReactor<v1::CompactRequest, v1::CompactResponse>(context_, call, "StreamCompact");
}

grpc::ServerUnaryReactor* AdminService::GetServerInfo(grpc::CallbackServerContext* call,
                                                      const v1::GetServerInfoRequest* /*request*/,
                                                      v1::GetServerInfoResponse* response) {
  const DeviceInfo& device = context_->device->info();
  const Admission::Use limits = context_->admission->limits();
  const Admission::Use use = context_->admission->in_use();
  response->set_version(kVersion);
  response->set_numerics_version(kNumericsVersion);
  response->set_device(device.name);
  response->set_device_memory_bytes(device.memory_bytes);
  response->set_device_memory_free_bytes(context_->lanes->free_memory_bytes());
  response->set_lanes(context_->lanes->num_lanes());
  response->set_max_message_bytes(context_->max_message_bytes);
  response->set_max_reply_payload_bytes(kMaxReplyPayloadBytes);
  SetBudget(limits.requests, use.requests, response->mutable_requests());
  SetBudget(limits.bytes, use.bytes, response->mutable_request_bytes());
  SetBudget(context_->lanes->staging_bytes(), context_->lanes->used_staging_bytes(), response->mutable_staging_bytes());
  response->set_uptime_seconds(absl::ToInt64Seconds(absl::Now() - started_));
  EncodeAlgorithms(*context_->device, response);
  EncodeCapabilities(*context_->device, response);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace prefixd
