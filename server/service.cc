#include "server/service.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "server/codec.h"
#include "server/version.h"

namespace prefixd {
namespace {

constexpr char kTraceParent[] = "traceparent";

CallInfo Describe(grpc::CallbackServerContext* call, std::string method, CallShape shape) {
  CallInfo info;
  info.method = std::move(method);
  info.caller = call->peer();
  info.shape = shape;
  const std::chrono::system_clock::time_point deadline = call->deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) info.deadline = absl::FromChrono(deadline);
  // W3C trace context: the caller finds its own id in our reply and in our log.
  if (const auto it = call->client_metadata().find(kTraceParent); it != call->client_metadata().end()) {
    info.trace_parent.assign(it->second.data(), it->second.size());
    call->AddInitialMetadata(kTraceParent, info.trace_parent);
  }
  return info;
}

// A message that belongs to gRPC and lives until the call ends.
template <class Request>
std::shared_ptr<const Request> Unowned(const Request* request) {
  return std::shared_ptr<const Request>(std::shared_ptr<void>(), request);
}

// One message in, one out.
template <class Request, class Response>
class UnaryReactor final : public grpc::ServerUnaryReactor, public Transport {
 public:
  UnaryReactor(ServerContext* context, CallInfo info, const Request* request, Response* response)
      : request_(request), response_(response), session_(Session::Create(context, std::move(info), this)) {
    session_->Start();
  }

  void Read() override {
    if (std::exchange(request_read_, true)) {
      session_->OnReadEnd();
    } else if (auto message = Decode(Unowned(request_)); message.ok()) {
      session_->OnMessage(*std::move(message));
    } else {
      session_->OnInvalidMessage(message.status());
    }
  }
  void Write(Reply reply) override {
    if constexpr (!std::is_same_v<Request, v1::ReduceRequest>) Encode(std::move(reply), response_);
    session_->OnWriteDone(true);
  }
  void Finish(const Result& result) override {
    if (result.status.ok()) Encode(result, response_);
    grpc::ServerUnaryReactor::Finish(ToGrpcStatus(result.status));
  }

  void OnCancel() override { session_->OnCancel(); }
  void OnDone() override { delete this; }

 private:
  const Request* const request_;
  Response* const response_;
  bool request_read_ = false;
  const std::shared_ptr<Session> session_;
};

// Messages in; Base says how replies go out. Base is the gRPC reactor.
template <class Base, class Request>
class ReadingReactor : public Base, public Transport {
 public:
  ReadingReactor(ServerContext* context, CallInfo info) : session_(Session::Create(context, std::move(info), this)) {}

  void Read() final {
    request_ = std::make_shared<Request>();
    this->StartRead(request_.get());
  }
  void OnReadDone(bool ok) final {
    if (!ok) {
      session_->OnReadEnd();
    } else if (auto message = Decode(std::shared_ptr<const Request>(std::move(request_))); message.ok()) {
      session_->OnMessage(*std::move(message));
    } else {
      session_->OnInvalidMessage(message.status());
    }
  }
  void OnCancel() final { session_->OnCancel(); }
  void OnDone() final { delete this; }

 protected:
  const std::shared_ptr<Session> session_;

 private:
  std::shared_ptr<Request> request_;
};

template <class Request, class Response>
class BidiReactor final : public ReadingReactor<grpc::ServerBidiReactor<Request, Response>, Request> {
 public:
  BidiReactor(ServerContext* context, CallInfo info)
      : ReadingReactor<grpc::ServerBidiReactor<Request, Response>, Request>(context, std::move(info)) {
    this->session_->Start();
  }

  void Write(Reply reply) override {
    response_.Clear();
    Encode(std::move(reply), &response_);
    this->StartWrite(&response_);
  }
  void Finish(const Result& result) override {
    if (!result.status.ok()) {
      grpc::ServerBidiReactor<Request, Response>::Finish(ToGrpcStatus(result.status));
      return;
    }
    response_.Clear();
    Encode(result, &response_);
    this->StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnWriteDone(bool ok) override { this->session_->OnWriteDone(ok); }

 private:
  Response response_;
};

class ReduceReactor final : public ReadingReactor<grpc::ServerReadReactor<v1::ReduceRequest>, v1::ReduceRequest> {
 public:
  ReduceReactor(ServerContext* context, CallInfo info, v1::ReduceResponse* response)
      : ReadingReactor(context, std::move(info)), response_(response) {
    session_->Start();
  }

  void Write(Reply /*reply*/) override { session_->OnWriteDone(true); }  // A reduce has none.
  void Finish(const Result& result) override {
    if (result.status.ok()) Encode(result, response_);
    grpc::ServerReadReactor<v1::ReduceRequest>::Finish(ToGrpcStatus(result.status));
  }

 private:
  v1::ReduceResponse* const response_;
};

void SetBudget(uint64_t limit, uint64_t used, v1::Budget* budget) {
  budget->set_limit(limit);
  budget->set_used(used);
}

}  // namespace

grpc::ServerUnaryReactor* PrefixService::Scan(grpc::CallbackServerContext* call, const v1::ScanRequest* request,
                                              v1::ScanResponse* response) {
  return new UnaryReactor(context_, Describe(call, "Scan", CallShape::kUnary), request, response);
}

grpc::ServerUnaryReactor* PrefixService::Reduce(grpc::CallbackServerContext* call, const v1::ReduceRequest* request,
                                                v1::ReduceResponse* response) {
  return new UnaryReactor(context_, Describe(call, "Reduce", CallShape::kUnary), request, response);
}

grpc::ServerUnaryReactor* PrefixService::Compact(grpc::CallbackServerContext* call, const v1::CompactRequest* request,
                                                 v1::CompactResponse* response) {
  return new UnaryReactor(context_, Describe(call, "Compact", CallShape::kUnary), request, response);
}

grpc::ServerBidiReactor<v1::ScanRequest, v1::ScanResponse>* PrefixService::StreamScan(
    grpc::CallbackServerContext* call) {
  return new BidiReactor<v1::ScanRequest, v1::ScanResponse>(context_, Describe(call, "StreamScan", CallShape::kStream));
}

grpc::ServerReadReactor<v1::ReduceRequest>* PrefixService::StreamReduce(grpc::CallbackServerContext* call,
                                                                        v1::ReduceResponse* response) {
  return new ReduceReactor(context_, Describe(call, "StreamReduce", CallShape::kStream), response);
}

grpc::ServerBidiReactor<v1::CompactRequest, v1::CompactResponse>* PrefixService::StreamCompact(
    grpc::CallbackServerContext* call) {
  return new BidiReactor<v1::CompactRequest, v1::CompactResponse>(context_,
                                                                  Describe(call, "StreamCompact", CallShape::kStream));
}

grpc::ServerUnaryReactor* AdminService::GetServerInfo(grpc::CallbackServerContext* call,
                                                      const v1::GetServerInfoRequest* /*request*/,
                                                      v1::GetServerInfoResponse* response) {
  const DeviceInfo device = context_->device->Info();
  const Admission::Use limits = context_->admission->limits();
  const Admission::Use use = context_->admission->in_use();
  const uint64_t staging = context_->lanes->staging_bytes();
  response->set_version(kVersion);
  response->set_numerics_version(kNumericsVersion);
  response->set_device(device.name);
  response->set_device_memory_bytes(device.memory_bytes);
  response->set_device_memory_free_bytes(device.memory_free_bytes);
  response->set_lanes(context_->lanes->num_lanes());
  response->set_max_message_bytes(context_->max_message_bytes);
  response->set_max_reply_payload_bytes(kMaxReplyPayloadBytes);
  SetBudget(limits.requests, use.requests, response->mutable_requests());
  SetBudget(limits.bytes, use.bytes, response->mutable_request_bytes());
  SetBudget(staging, staging, response->mutable_staging_bytes());
  response->set_uptime_seconds(absl::ToInt64Seconds(absl::Now() - started_));
  EncodeCapabilities(*context_->device, response);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace prefixd
