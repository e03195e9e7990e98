#include "client/array_call.h"

#include <grpcpp/impl/client_unary_call.h>
#include <grpcpp/impl/rpc_method.h>

#include <string>

#include "absl/time/time.h"

namespace prefixd::client {

using grpc::internal::RpcMethod;

Lender::Lender(const Connection& connection)
    : connection_(&connection), loan_(this, [this](const void*) { given_back_.Notify(); }) {}

Lender::~Lender() {
  if (loan_ == nullptr) return;
  loan_.reset();
  while (!given_back_.HasBeenNotified()) connection_->Work(absl::Milliseconds(5));
}

Payload Lender::Lend(Bytes bytes, const Payload::Owner& owner) const {
  const std::string_view part(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (owner != nullptr) return Payload(part, owner);
  return loan_ != nullptr ? Payload(part, loan_) : Payload(std::string(part));
}

absl::Status CheckWhole(Bytes values, DType dtype) {
  if (values.size() % SizeOf(dtype) == 0) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "LENGTH_NOT_MULTIPLE", "values.inline.data",
               StrCat("the chunk has ", values.size(), " bytes, no multiple of the ", SizeOf(dtype),
                      " of an element of type ", Name(dtype)));
}

grpc::Status CallMethod(grpc::Channel& channel, const char* method, grpc::ClientContext* context,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  return grpc::internal::BlockingUnaryCall(&channel, RpcMethod(method, RpcMethod::NORMAL_RPC), context, request,
                                           response);
}

ByteStream::ByteStream(const Server& server, const char* method, const CallOptions& call, absl::Time deadline)
    : context_(server, call, deadline),
      rpc_(grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
          server.channel().get(), RpcMethod(method, RpcMethod::BIDI_STREAMING), context_.get())) {}

ByteStream::~ByteStream() {
  if (status_) return;
  Cancel();
  Finish().IgnoreError();
}

absl::Status ByteStream::Finish() {
  if (!status_) {
    for (grpc::ByteBuffer dropped; rpc_->Read(&dropped);) continue;
    status_ = FromGrpc(rpc_->Finish());
  }
  return *status_;
}

void ByteStream::Fail(absl::Status status) {
  Cancel();
  Finish().IgnoreError();
  status_ = std::move(status);
}

}  // namespace prefixd::client
